import signal
import threading

import pytest

from neural_brane.files.checkpoints import STOP_SIGNALS, DelayedStop


@pytest.fixture
def handlers():
    """Append signals that would end the tests to a list, which is returned."""
    seen = []
    before = {number: signal.signal(number, lambda number, _: seen.append(number)) for number in STOP_SIGNALS}
    yield seen
    for number, old in before.items():
        signal.signal(number, old)


@pytest.mark.parametrize("number", STOP_SIGNALS)
def test_a_signal_waits_until_it_is_released(handlers, number):
    with DelayedStop() as stop:
        stop.busy = True
        signal.raise_signal(number)
        assert stop.requested
        assert handlers == []
        stop.busy = False
        stop.release()
        assert handlers == [number]
        signal.raise_signal(number)
        assert handlers == [number, number]  # the handler returned, so it is called for the next signal too


def test_a_second_signal_does_not_wait(handlers):
    with DelayedStop() as stop:
        stop.busy = True
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
        assert handlers == [signal.SIGTERM]


def test_a_signal_that_was_not_released_is_raised_at_the_end(handlers):
    with DelayedStop() as stop:
        stop.busy = True
        signal.raise_signal(signal.SIGINT)
    assert handlers == [signal.SIGINT]
    assert signal.getsignal(signal.SIGINT) not in (None, stop._handle)


def test_ctrl_c_becomes_an_interrupt_after_the_step():
    steps = []
    with pytest.raises(KeyboardInterrupt), DelayedStop() as stop:  # noqa: PT012
        for step in range(3):
            stop.busy = True
            signal.raise_signal(signal.SIGINT)
            steps.append(step)
            stop.busy = False
            stop.release()
    assert steps == [0]


def test_a_signal_that_is_ignored_stays_so(handlers):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with DelayedStop() as stop:
        signal.raise_signal(signal.SIGTERM)
        assert not stop.requested
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN


def test_other_threads_leave_signals_alone():
    found = []

    def look():
        with DelayedStop():
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert found == [signal.getsignal(signal.SIGINT)]


def test_an_error_of_the_reporter_waits_for_the_end_of_the_step():
    def report(progress):
        raise RuntimeError(progress)

    with pytest.raises(RuntimeError, match="first"), DelayedStop() as stop:  # noqa: PT012
        delayed = stop.delay_errors(report)
        with pytest.raises(RuntimeError, match="zeroth"):
            delayed("zeroth")
        stop.busy = True
        delayed("first")
        delayed("second")
        stop.busy = False
        stop.release()
