"""When a time-out is the model's own doing, and when it says nothing of the model."""

from agrotools.models.timeouts import AnswerLog, Sent


class Wire:
    """A log whose clock stands still until it is told to go on."""

    def __init__(self, timeout_s: float = 10.0) -> None:
        self.now = 0.0
        self.log = AnswerLog(timeout_s, clock=lambda: self.now)

    def reply(self, after_s: float = 1.0, *, probe: bool = False) -> None:
        sent = self.log.send()
        self.now += after_s
        self.log.answered(sent, probe=probe)
        self.log.end()

    def doubt(self, sent: Sent, *, has_worked: bool = True) -> str:
        """Give up a request after its time and have a probe answered."""
        self.now = sent.at + 10.0
        given_up = self.log.given_up(sent)
        self.log.end()
        self.reply(0.1, probe=True)
        return self.log.doubt(given_up, has_worked=has_worked)


def test_alone_between_replies_to_others_it_is_the_models_own() -> None:
    wire = Wire()
    wire.reply()
    assert wire.doubt(wire.log.send()) == ""
    # The probe after it was answered, so the next one stands behind nothing that was given up.
    assert wire.doubt(wire.log.send()) == ""


def test_beside_another_request_it_is_not_whichever_was_sent_first() -> None:
    wire = Wire()
    wire.reply()
    first, second = wire.log.send(), wire.log.send()
    assert "in flight" in wire.doubt(first)
    assert "in flight" in wire.doubt(second)


def test_before_any_reply_nothing_is_known_of_the_endpoint() -> None:
    wire = Wire()
    wire.reply(probe=True)
    assert "no request of this run" in wire.doubt(wire.log.send(), has_worked=False)


def test_behind_a_request_that_was_given_up_it_may_have_waited_in_a_queue() -> None:
    wire = Wire()
    wire.reply()
    sent = wire.log.send()
    wire.now += 10.0
    wire.log.given_up(sent)
    wire.log.end()
    assert not wire.log.clear
    assert "in its way" in wire.doubt(wire.log.send())


def test_after_most_were_left_waiting_only_a_reply_shows_that_the_endpoint_has_recovered() -> None:
    wire = Wire()
    wire.reply()
    crowd = [wire.log.send() for _ in range(4)]
    wire.now += 10.0
    given_up = [wire.log.given_up(each) for each in crowd]
    for _ in crowd:
        wire.log.end()
    assert not any(each.exceptional for each in given_up)
    wire.reply(0.1, probe=True)
    assert "overloaded" in wire.doubt(wire.log.send())
    wire.reply()
    assert wire.doubt(wire.log.send()) == ""


def test_one_that_is_left_waiting_while_most_are_answered_is_an_exception_and_no_overload() -> None:
    wire = Wire()
    stuck = wire.log.send()
    for _ in range(5):
        wire.reply()
    wire.now = 10.0
    given_up = wire.log.given_up(stuck)
    wire.log.end()
    assert (given_up.exceptional, given_up.replies, given_up.alone) == (True, 5, False)
    wire.reply(0.1, probe=True)
    assert wire.doubt(wire.log.send()) == ""


def test_where_usual_replies_take_most_of_the_time_it_is_the_time_that_is_too_short() -> None:
    wire = Wire()
    for _ in range(8):
        wire.reply(6.0)
    assert "too short" in wire.doubt(wire.log.send())
    for _ in range(8):
        wire.reply(4.0)
    assert wire.doubt(wire.log.send()) == ""
