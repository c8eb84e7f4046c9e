"""LangChain and LangGraph: the names of :mod:`tcc.langchain`."""

from __future__ import annotations

from tcc.langchain import ForeignHead, TccMiddleware, build_graph, guard

__all__ = ["ForeignHead", "TccMiddleware", "build_graph", "guard"]
