"""Tools of LangChain behind a gate, and graphs of LangGraph (extra ``langgraph``).

    agent = create_agent(model, tcc.langchain.guard(tools, gate), middleware=[TccMiddleware(gate)])

Documentation: docs/langgraph.md.
"""

from __future__ import annotations

try:
    from tcc_runtime.langchain.graph import build_graph
    from tcc_runtime.langchain.guard import guard
    from tcc_runtime.langchain.middleware import ForeignHead, TccMiddleware
except ModuleNotFoundError as error:
    said = f"{error}: tcc.langchain needs the extra: pip install 'tcc[langgraph]'"
    raise ModuleNotFoundError(said, name=error.name) from error

__all__ = ["ForeignHead", "TccMiddleware", "build_graph", "guard"]
