"""Which model is asked next: the rule of race.md, section 19, at every tie and at every cap."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import pytest

from tcc_certs.policy.atoms import Exact
from tcc_certs.policy.plans import Model
from tcc_certs.privacy.spending import account
from tcc_certs.replay.amounts import AskRule, SpendingCaps, SpentAmounts
from tcc_certs.replay.asking.controller import Controller
from tests.certs.privacy.truth import atom
from tests.oracle_ledger import controller as oracle

WIDTH = 1000


def rule(**changed: object) -> AskRule:
    told = {"price_weight": (1, 0), "latency_weight": (1, 0), "epsilon_weight": (1, 0)}
    return AskRule(**{"ask": "leaf", **told, "caps": SpendingCaps(), **changed})


def model(price: int, latency: int = 0, epsilon: int = 0) -> Model:
    return Model(name=f"m{price}", price=price, latency=latency, epsilon=epsilon)


def chosen(models: list[Model], gained: tuple[int, ...] = (), **changed: object) -> int | None:
    """The model that is asked next, once each was asked and gained so much of its width."""
    controller = Controller(rule(**changed))
    for number, gain in enumerate(gained):
        tried = [other for other in range(len(models)) if other != number]
        choice = controller.choose(0, models, tried, WIDTH)
        assert choice is not None and choice.number == number
        controller.settle(0, choice, SpentAmounts(), WIDTH, gain)
    found = controller.choose(0, models, [], WIDTH)
    return None if found is None else found.number


@pytest.mark.parametrize(
    ("prices", "gained", "due"),
    [
        # What is predicted is 1000 * (1000 + 2 * gained) / 4000: 250, 500 or 750.
        ((2, 1), (), 1),  # one gain, the lesser burden
        ((1, 2), (), 0),
        ((3, 1, 2), (), 1),
        ((1, 1), (0, 1000), 1),  # one burden, the greater gain
        ((1, 1), (1000, 0), 0),
        ((1, 2), (0, 500), 1),  # one gain for its burden: the greater gain
        ((2, 1), (500, 0), 0),
        ((4, 1), (1000, 0), 1),  # the greater gain, and less of it for its burden
        ((1, 4), (0, 1000), 0),
        ((1, 1), (500, 500), 0),  # equal in all: the earlier
        ((1, 1, 1), (), 0),
        ((0, 1), (0, 1000), 0),  # what costs nothing comes before all that costs something
        ((1, 0), (1000, 0), 1),
        ((0, 0), (0, 500), 1),  # two that cost nothing: the greater gain
        ((0, 0), (500, 0), 0),
        ((0, 0), (500, 500), 0),
    ],
)
def test_the_most_gain_for_its_burden_is_asked_for(prices, gained, due):
    assert chosen([model(price) for price in prices], gained) == due


@pytest.mark.parametrize(
    ("weight", "due"), [("price_weight", 1), ("latency_weight", 2), ("epsilon_weight", 0)]
)
def test_a_burden_weighs_price_latency_and_epsilon(weight, due):
    models = [model(3, 3, 1), model(1, 2, 2), model(2, 1, 3)]
    assert chosen(models, **{weight: (10**12, 0)}) == due


def test_of_atoms_a_burden_weighs_what_each_comes_to_by_itself():
    # Both say an epsilon of 0; of one an atom is taken beside it.
    delta = Exact(1, 6)
    one = Model(
        name="one", price=1, latency=0, epsilon=0,
        atom=atom(mechanism="laplace", scale="8", sensitivity="1"),
    )  # fmt: skip
    models = [one, model(1)]
    assert chosen(models) == 0
    assert chosen(models, taken=account(delta, (), True)) == 1


@pytest.mark.parametrize("name", ["price", "latency", "epsilon"])
def test_a_cap_may_be_reached_and_not_exceeded(name):
    spent = SpentAmounts(**{name: 7})
    for cap, holds in ((6, False), (7, True), (8, True), (None, True)):
        assert SpendingCaps(**{name: cap}).hold(spent) is holds
    at_least = {"price": 9, "latency": 9, "epsilon": 9}
    assert SpendingCaps(**at_least).hold(SpentAmounts(price=7, latency=7, epsilon=7))
    assert not SpendingCaps(**{**at_least, name: 6}).hold(
        SpentAmounts(price=7, latency=7, epsilon=7)
    )


def test_a_cap_on_epsilon_is_held_against_the_account_where_there_is_one():
    taken = account(Exact(1, 6), (), True)
    of = atom(mechanism="laplace", scale="8", sensitivity="1")
    spent = SpentAmounts(taken=taken).plus(SpentAmounts(epsilon=5, atom=of))
    assert spent.epsilon == 5
    assert spent.epsilon_used > 10**8
    for cap, holds in ((5, False), (spent.epsilon_used - 1, False), (spent.epsilon_used, True)):
        assert SpendingCaps(epsilon=cap).hold(spent) is holds
    assert SpentAmounts().plus(SpentAmounts(epsilon=5, atom=of)).epsilon_used == 5


@pytest.mark.parametrize(("cap", "due"), [(2, None), (3, 1), (4, 1), (5, 0), (None, 0)])
def test_only_what_fits_the_caps_is_asked(cap, due):
    # The first has the lesser burden, as it answers at once; the second the lesser price.
    controller = Controller(rule(caps=SpendingCaps(price=cap)))
    found = controller.choose(0, [model(5, 1), model(3, 100)], [], WIDTH)
    assert (None if found is None else found.number) == due


def test_what_was_spent_counts_against_a_cap():
    controller, models = Controller(rule(caps=SpendingCaps(price=5))), [model(2)]
    for _ in range(2):
        choice = controller.choose(0, models, [], WIDTH)
        assert choice is not None
        controller.settle(0, choice, SpentAmounts(price=2), WIDTH, 0)
    assert controller.choose(0, models, [], WIDTH) is None
    assert not controller.overspent
    controller.settle(0, choice, SpentAmounts(price=2), WIDTH, 0)
    assert controller.overspent


@pytest.mark.parametrize("free", [0, 1])
def test_what_costs_nothing_comes_first_even_where_it_is_raised_to_nothing(free):
    # It gained nothing where half of the width was predicted: 250 less 500 is held at 0.
    models = [model(0), model(1)] if free == 0 else [model(1), model(0)]
    controller = Controller(rule(margin=(5, 1)))
    choice = controller.choose(0, models, [1 - free], WIDTH)
    assert choice is not None
    controller.settle(0, choice, SpentAmounts(), WIDTH, 0)
    again = controller.choose(0, models, [], WIDTH)
    assert again is not None
    assert (again.number, again.raised) == (free, (0, 1))
    other = controller.choose(0, models, [free], WIDTH)
    assert other is not None and other.raised == (WIDTH, 1)


def _decimal(random: Random, places: int = 2) -> tuple[int, int]:
    return random.randint(1, 300), random.randint(0, places)


@pytest.mark.parametrize("seed", range(60))
def test_random_asks_are_chosen_as_fractions_say(seed):
    random = Random(seed)
    prices, latencies, epsilons = _decimal(random), _decimal(random), _decimal(random)
    margin = random.choice([None, (5, 1), (9, 1), (95, 2)])
    caps = [random.choice([None, random.randint(1, 200)]) for _ in range(3)]
    told = rule(
        price_weight=prices,
        latency_weight=latencies,
        epsilon_weight=epsilons,
        margin=margin,
        caps=SpendingCaps(price=caps[0], latency=caps[1], epsilon=caps[2]),
    )
    truth = oracle.Rule(
        weights=tuple(Fraction(n, 10**p) for n, p in (prices, latencies, epsilons)),
        caps=tuple(caps),
        margin=None if margin is None else Fraction(margin[0], 10 ** margin[1]),
    )
    models = [
        Model(
            name=f"m{number}",
            price=random.randint(0, 4),
            latency=random.randint(0, 6),
            epsilon=random.choice([0, random.randint(0, 9)]),
            quality=(random.randint(0, 100), 2),
        )
        for number in range(random.randint(1, 4))
    ]
    controller, asks, chosen_so_far = Controller(told), [], 0
    for _ in range(30):
        tool, width = random.randrange(2), random.randint(1, 50)
        tried = random.sample(range(len(models)), random.randint(0, len(models) - 1))
        most = random.choice([None, (random.randint(0, 90), random.randint(1, 3))])
        useful = None if most is None else Fraction(*most)
        due = oracle.chosen(truth, asks, tool, models, tried, width, useful)
        found = controller.choose(tool, models, tried, width, most)
        if due is None:
            assert found is None
            continue
        assert found is not None and found.number == due.number
        took = (found.reserved.price, found.reserved.latency, found.reserved.epsilon)
        assert took == due.takes
        assert (Fraction(*found.gain), Fraction(*found.raised), Fraction(*found.useful)) == (
            due.gain,
            due.raised,
            due.useful,
        )
        chosen_so_far += 1
        spent = SpentAmounts(
            price=random.randint(0, 5), latency=random.randint(0, 9), epsilon=random.randint(0, 9)
        )
        gained = random.randint(0, width)
        controller.settle(tool, found, spent, width, gained)
        asks.append(
            oracle.Ask(
                tool=tool,
                number=found.number,
                price=spent.price,
                latency=spent.latency,
                epsilon=spent.epsilon,
                width=width,
                gained=gained,
                predicted=due.gain,
            )
        )
    assert chosen_so_far
