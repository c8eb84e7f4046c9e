"""The Model Context Protocol: a gate between clients and servers, in one asyncio event loop.

    client  <-- Link -->  Client  -->  Relay  -->  Server  <-- Link -->  server
                                         |
                                     Decisions (the gate)

- A **Link** (:mod:`~tcc_runtime.mcp.links`) sends and receives whole messages, and does all I/O.
  Links to servers: a program (`stdio`), a URL (`http_client`), several servers as one (`fan_out`),
  one program for several sessions (`shared`).  Links to clients: standard input and output
  (`stdio`), one posted message (`http_server`).
- **Client** and **Server** know the two forms of the protocol, and have no I/O.
- **Relay** has the calls of one session: those that wait, those under way, their time limits and
  their cancellation.  It has neither I/O nor policy.
- **Decisions** (:mod:`~tcc_runtime.mcp.deciding`) asks the gate about a call, and records how it
  ended.

:mod:`~tcc_runtime.mcp.guarding` puts these together for one client over stdio,
:mod:`~tcc_runtime.mcp.hosting` and :mod:`~tcc_runtime.mcp.http` for many over HTTP.

Everything is a task of one loop, so state needs no locks.  Three rules apply.  Code that waits for
a file (a ledger, the disk) runs in a thread that does not touch the state of the relay.
`Link.send` never waits: a sender looks at `Link.waiting` first, so unread bytes are bounded.  A
cancelled task gives back the turn of the session, its connection and its process.
"""
