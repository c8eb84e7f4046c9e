"""LangChain's tools behind a gate, and LangGraph around one (extra ``langgraph``).

Start with :mod:`tcc_runtime.langchain.guard`: the gate stands inside the tools, so nothing that a
graph or a middleware does to a call comes after it.  Text: docs/langgraph.md.
"""
