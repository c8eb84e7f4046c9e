"""LangChain tools behind a gate, and graphs of LangGraph around one (extra ``langgraph``).

Start with :mod:`tcc_runtime.langchain.guard`.  The gate is inside the tools, so no graph or
middleware can change a call after the decision.  Text: docs/langgraph.md.
"""
