import numba

from neural_brane.progress import INTERVAL, Meter, noticing_compilation


def clock_of(*times):
    return iter(times).__next__


def test_reports_come_at_intervals_when_an_epoch_begins_and_at_the_end():
    seen = []
    steps = 0.0, 0.01, 0.02, 0.02 + 1.1 * INTERVAL, 0.3, 0.31, 0.32
    meter = Meter(seen.append, 6, "steps", epochs=2, clock=clock_of(*steps))
    for epoch in (1, 1, 1, 1, 2, 2):
        meter.advance(epoch=epoch, loss=0.5)
    assert [(progress.done, progress.epoch) for progress in seen] == [(1, 1), (3, 1), (5, 2), (6, 2)]
    assert {(progress.total, progress.epochs, progress.loss, progress.unit) for progress in seen} == {
        (6, 2, 0.5, "steps")
    }


def test_the_rate_counts_from_the_last_report():
    seen = []
    meter = Meter(seen.append, 100, "pairs", clock=clock_of(0.0, 2.0, 3.0))
    meter.resume(10)
    meter.advance(30)
    meter.advance(60)
    assert [(progress.done, progress.rate) for progress in seen] == [(40, 15.0), (100, 60.0)]


def test_without_a_reporter_it_only_counts():
    meter = Meter(None, 3, "steps", clock=clock_of(0.0))
    meter.advance(2)
    assert meter.done == 2


def test_compilation_is_reported_once_and_only_if_a_kernel_is_compiled():
    told = []
    halve, double = numba.njit(lambda x: x / 2), numba.njit(lambda x: x * 2)
    halve(3)
    with noticing_compilation(lambda: told.append("compiling")):
        halve(5)
        assert told == []
        double(3)
        double(3.5)
    assert told == ["compiling"]
    double(3j)
    assert told == ["compiling"]
