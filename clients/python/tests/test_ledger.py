"""What a stream gives out: once, unless there is a reason for giving it out again."""

from __future__ import annotations

from support import batch

from polar_mesh import Filter
from polar_mesh.errors import NotFound
from polar_mesh.ledger import Books, Delivery, Intake
from polar_mesh.limits import ACKED_KEPT


def message(batch_id, nacks=0, ready_ms=1000, delivery=0):
    one = batch(batch_id)
    one.nack_count = nacks
    one.delivery_count = delivery
    one.ready_time.FromMilliseconds(ready_ms)
    return one


def give_back(books, *given):
    with books.giving_back(given) as latest:
        return latest


def test_what_is_held_or_acknowledged_is_not_given_out_again():
    books = Books()
    assert books.take(message(3))
    assert not books.take(message(3))
    books.acked([3], floor=2)
    assert not books.take(message(3))


def test_what_was_put_back_is_given_out_once_more():
    books = Books()
    assert books.take(message(3))
    books.put_back(3)
    assert books.take(message(3))
    give_back(books, Delivery(3, 0))
    books.put_back(3)
    assert books.take(message(3)), "the call that gives it back has failed"


def test_what_was_given_back_comes_again_when_the_server_knows_of_it():
    books = Books()
    assert books.take(message(3))
    give_back(books, Delivery(3, 0))
    assert not books.take(message(3)), "sent before the server knew"
    assert books.take(message(3, nacks=1))
    assert not books.take(message(3, nacks=1)), "once"


def test_what_is_given_back_is_the_last_delivery_of_what_is_held():
    books = Books()
    assert books.take(message(3, delivery=1))
    assert not books.take(message(3, delivery=2)), "by a new connection"
    assert give_back(books, Delivery(3, 1)) == [Delivery(3, 2)]
    assert give_back(books, Delivery(3, 1)) == [Delivery(3, 2)], "repeated"
    assert not books.take(message(3, delivery=2))
    assert books.take(message(3, nacks=1, delivery=3))
    assert give_back(books, Delivery(3, 1)) == [Delivery(3, 1)], "repeated again: what came since is not meant"
    assert books.held == 1
    assert give_back(books, Delivery(3, 3), Delivery(4, 1)) == [Delivery(3, 3), Delivery(4, 1)]
    assert books.held == 0


def test_what_is_given_back_twice_at_once_is_given_back():
    books = Books()
    assert books.take(message(3, delivery=1))
    assert give_back(books, Delivery(3, 1), Delivery(3, 1)) == [Delivery(3, 1), Delivery(3, 1)]
    assert books.held == 0


def test_what_was_sent_again_before_the_server_was_told_is_given_out():
    books = Books()
    assert books.take(message(3, delivery=1))
    give_back(books, Delivery(3, 1))
    assert books.take(message(3, delivery=2)), "the server takes the first delivery back no more"
    assert not books.take(message(3, delivery=2)), "once"


def test_what_another_process_gave_back_comes_again_though_it_is_held():
    books = Books()
    assert books.take(message(3))
    assert books.take(message(3, nacks=1))


def test_a_seek_makes_everything_new():
    books = Books()
    books.take(message(3))
    books.acked([3], floor=3)
    books.sought(0)
    books.take(message(4))
    books.sought(1)
    assert books.take(message(3))
    assert books.take(message(4))
    books.sought(1)
    assert not books.take(message(4))


def test_an_acknowledgement_of_what_a_seek_made_void_does_not_keep_its_replay_back():
    books = Books()
    books.take(message(3))
    books.sought(1)
    books.acked([3], floor=2)
    assert books.take(message(3))


def test_what_was_sent_again_before_it_was_acknowledged_is_not_given_out_again():
    books = Books()
    for batch_id in (3, 4):
        books.take(message(batch_id))
    # A new connection brings both again; another thread acknowledges before that is read.
    books.acked([3, 4], floor=4)
    assert not books.take(message(3))
    assert not books.take(message(4))


def test_an_id_that_the_server_gave_anew_is_another_batch():
    books = Books()
    for batch_id in (3, 4, 5):
        books.take(message(batch_id))
    books.acked([3], floor=3)
    give_back(books, Delivery(4, 0))
    for batch_id in (3, 4, 5):
        assert books.take(message(batch_id, ready_ms=2000))
        assert not books.take(message(batch_id, ready_ms=2000)), "once"


def test_a_consumer_that_was_deleted_is_sent_everything_again():
    books = Books()
    intake = Intake(books)
    books.sought(2)
    books.take(message(3))
    books.acked([3], floor=3)
    intake.broken(NotFound("deleted", code="NOT_FOUND"))
    assert books.take(message(3))
    books.sought(1)
    assert books.take(message(3)), "its own first seek"


def test_the_acknowledged_ids_that_are_known_are_bounded():
    books = Books()
    for batch_id in range(1, ACKED_KEPT + 100):
        books.take(message(batch_id))
        books.acked([batch_id], floor=batch_id)
    assert (len(books._acked), len(books._held)) == (ACKED_KEPT, 0)
    assert not books.take(message(batch_id))


def test_what_is_acknowledged_out_of_order_is_known_until_the_floor_has_passed_it():
    books = Books()
    for batch_id in range(1, ACKED_KEPT + 100):
        books.take(message(batch_id))
    books.acked(range(2, ACKED_KEPT + 100), floor=0)
    assert not books.take(message(2))
    books.acked([1], floor=ACKED_KEPT + 99)
    assert len(books._acked) == ACKED_KEPT


def test_a_filter_sees_what_has_become_stale_since_it_was_sent():
    one = batch(3)
    one.policy_version = 5
    one.trajectories[0].policy_version_min = 4
    one.trajectories[1].policy_version_min = 5
    assert not Filter(staleness_max=1).is_stale(one, 5)
    assert Filter(staleness_max=1).is_stale(one, 6)
    assert not Filter(staleness_max=2).is_stale(one, 6)
    assert not Filter().is_stale(one, 99)
    del one.trajectories[0].traces[:]
    assert not Filter(staleness_max=1).is_stale(one, 6), "without traces it is dropped already"


def test_a_filter_says_what_it_was_given():
    rules = Filter(staleness_max=0, usable_fraction_min=0.5, drop_zero_variance=True, task_id_prefix="a-").message()
    assert rules.HasField("staleness_max") and rules.staleness_max == 0
    assert not rules.HasField("policy_span_max")
    assert (rules.usable_fraction_min, rules.drop_zero_variance, rules.task_id_prefix) == (0.5, True, "a-")
