"""Proofs of exact questions (``tcc.proof/1.0``), checked: the kernel.

Normative text: docs/spec/proof.md.  A *configuration* is where a session is: places of both sides,
what their monitors remember, exact sums.  A listed *state* stands for every configuration that one
gets by giving each of its tokens a value of its own out of the token's atom, and each of its sums a
number out of its interval.  The list is closed if the start is in it, and if each call that the
left side lets through at a state leads into a listed state under a renaming within atoms.  Then
every session of the left side is at a listed state, and what no listed state allows never happens.

What has to be tried is made here from the cores alone: atoms, calls, choices of tokens, and which
keys are asked about.  A file says where each of them leads, and nothing more.  What is not known
(how many texts a pattern has) is taken to be possible where a session would refute, and to be
impossible where one is needed.
What such a list shows is machine-checked (Closed.v: a_closed_list_proves_inclusion,
every_session_can_be_finished; Relaxed.v: forgetting_admits_more, a_rule_is_broken_at_one_key).
No theorem is about the Python of this folder; tests/exact holds it to brute force and to forgeries.
Cost: linear in the steps of the file; one state in memory for each state of the file.
"""
