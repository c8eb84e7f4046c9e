"""A process that draws on an account until it is killed.

Before a question counts as put, what it takes is written to a file of the process's own: what was
truly taken, whatever the account says.
"""

from __future__ import annotations

import os
import random
import sys
import time

from tcc_certs.errors import Code, Rejected
from tcc_runtime.account.account import Account
from tcc_runtime.account.amounts import AccountAmounts


def draw(path: str, log: str, seed: int) -> None:
    """Reserves, asks, and settles at times for less than was reserved."""
    rng = random.Random(seed)
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    account = Account(path, must_exist=True)
    for number in range(10**9):
        wish = AccountAmounts(rng.randint(1, 5), rng.randint(1, 30), rng.randint(1, 10**6))
        name = f"{seed} {number}"
        if not account.reserve(name, f"run {seed}", wish).granted:
            time.sleep(0.01)
            continue
        if rng.random() < 0.1:
            account.give_back(name)
            continue
        try:
            account.begin(name)
        except Rejected as refusal:
            if refusal.code is not Code.ACCOUNT_LEASE:
                raise
            continue  # it was too slow: the question is not put
        took = wish if rng.random() < 0.5 else AccountAmounts(wish.price - 1, 0, wish.epsilon // 2)
        os.write(handle, f"{name},{took.price},{took.latency_ms},{took.epsilon}\n".encode())
        time.sleep(rng.random() * 0.04)
        account.settle(name, took)


if __name__ == "__main__":
    draw(sys.argv[1], sys.argv[2], int(sys.argv[3]))
