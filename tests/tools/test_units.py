from speed.units import digits, short_time


def test_three_digits():
    seconds = 3.7e-5, 9.996e-4, 2.5e-9, 12.3, 1234
    assert [short_time(each) for each in seconds] == [
        "37.0 µs", "1.00 ms", "2.50 ns", "12.3 s", "1,234 s",
    ]  # fmt: skip
    assert [digits(each) for each in (0, 0.000123, 1.005, 99.96)] == [
        "0", "0.0001", "1.00", "100",
    ]  # fmt: skip
