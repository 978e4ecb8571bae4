//! Dates with a time, as RFC 3339 and ISO 8601 write them.

const NS_PER_S: u64 = 1_000_000_000;

/// Nanoseconds since 1970 of `2024-01-02T03:04:05.123Z`. A blank may stand for the `T`; without `Z` or an
/// offset as in `+01:00` it is a time of UTC. Years from 1970 to 2554.
pub(crate) fn nanoseconds(text: &[u8]) -> Option<u64> {
    let (day, rest) = text.split_at_checked(10)?;
    let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = day else {
        return None;
    };
    let year = number(&[*y1, *y2, *y3, *y4])?;
    let (month, day) = (number(&[*m1, *m2])?, number(&[*d1, *d2])?);
    let rest = match rest {
        [b'T' | b't' | b' ', rest @ ..] => rest,
        _ => return None,
    };
    let (clock, rest) = rest.split_at_checked(8)?;
    let [h1, h2, b':', n1, n2, b':', s1, s2] = clock else {
        return None;
    };
    let (hour, minute) = (number(&[*h1, *h2])?, number(&[*n1, *n2])?);
    // A leap second counts as the one behind it.
    let second = number(&[*s1, *s2])?;
    let (fraction, zone) = match rest {
        [b'.' | b',', rest @ ..] => {
            let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
            let (digits, zone) = rest.split_at(digits);
            (nanos(digits)?, zone)
        }
        zone => (0, zone),
    };
    let fits = hour < 24 && minute < 60 && second < 60 + u64::from(minute == 59);
    let days = days(year, month, day).filter(|_| fits)?;
    let seconds = ((days * 24 + hour) * 60 + minute) * 60 + second;
    let (east, offset) = zone_seconds(zone)?;
    let seconds = if east {
        seconds.checked_sub(offset)?
    } else {
        seconds + offset
    };
    seconds.checked_mul(NS_PER_S)?.checked_add(fraction)
}

/// Whether a text is the first word of a date with a blank before the time.
pub(crate) fn is_day(text: &[u8]) -> bool {
    text.len() == 10 && nanoseconds(&[text, b"T00:00:00"].concat()).is_some()
}

fn number(digits: &[u8]) -> Option<u64> {
    let digit = |b: &u8| b.is_ascii_digit().then(|| u64::from(b - b'0'));
    digits.iter().try_fold(0, |n, b| Some(n * 10 + digit(b)?))
}

/// The digits of a fraction; those behind the ninth are cut off.
fn nanos(digits: &[u8]) -> Option<u64> {
    let kept = &digits[..digits.len().min(9)];
    let scale = 10_u64.pow(9 - kept.len() as u32);
    number(kept).filter(|_| !kept.is_empty()).map(|n| n * scale)
}

/// Whether a zone lies east of UTC, and by how much.
fn zone_seconds(zone: &[u8]) -> Option<(bool, u64)> {
    let (sign, rest) = match zone {
        [] | [b'Z' | b'z'] => return Some((true, 0)),
        [sign @ (b'+' | b'-'), rest @ ..] => (*sign, rest),
        _ => return None,
    };
    let (hours, minutes) = match rest {
        [a, b] => (number(&[*a, *b])?, 0),
        [a, b, b':', c, d] | [a, b, c, d] => (number(&[*a, *b])?, number(&[*c, *d])?),
        _ => return None,
    };
    let fits = hours < 24 && minutes < 60;
    fits.then_some((sign == b'+', (hours * 60 + minutes) * 60))
}

/// Days from 1970-01-01 to a day of the Gregorian calendar.
fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    const BEFORE: [u64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    let is_leap = |y: u64| y.is_multiple_of(4) && (!y.is_multiple_of(100) || y.is_multiple_of(400));
    let leaps = |before: u64| (before - 1) / 4 - (before - 1) / 100 + (before - 1) / 400;
    let index = usize::try_from(month).ok()?.checked_sub(1)?;
    let before = *BEFORE.get(index)?;
    let length = match month {
        2 => 28 + u64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    if year < 1970 || !(1..=length).contains(&day) {
        return None;
    }
    let leap_day = u64::from(month > 2 && is_leap(year));
    Some((year - 1970) * 365 + (leaps(year) - leaps(1970)) + before + leap_day + day - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (text, seconds, ns) in [
            ("1970-01-01T00:00:00Z", 0, 0),
            ("2000-02-29T12:00:00Z", 951_825_600, 0),
            ("2024-01-02T03:04:05.123Z", 1_704_164_645, 123_000_000),
            ("2024-01-02 03:04:05", 1_704_164_645, 0),
            ("2024-01-02T04:04:05+01:00", 1_704_164_645, 0),
            ("2024-01-01T21:34:05,5-0530", 1_704_164_645, 500_000_000),
            ("2100-03-01T00:00:00Z", 4_107_542_400, 0),
            ("2024-12-31T23:59:60Z", 1_735_689_600, 0),
            (
                "2024-01-02T03:04:05.1234567899Z",
                1_704_164_645,
                123_456_789,
            ),
        ] {
            let found = nanoseconds(text.as_bytes());
            assert_eq!(found, Some(seconds * NS_PER_S + ns), "{text}");
        }
    }

    #[test]
    fn what_is_no_date_is_none() {
        for text in [
            "",
            "2024-01-02",
            "2023-02-29T00:00:00",
            "2024-13-01T00:00:00",
            "2024-00-01T00:00:00",
            "2024-01-32T00:00:00",
            "1969-12-31T23:59:59",
            "2024-01-02T24:00:00",
            "2024-01-02T03:60:05",
            "2024-01-02T03:04:60",
            "2024-01-02T03:04:05.",
            "2024-01-02T03:04:05+1",
            "2024-01-02T03:04:05 CET",
            "1970-01-01T00:00:00+00:01",
            "9999-01-01T00:00:00",
            "02.01.2024 03:04:05",
        ] {
            assert_eq!(nanoseconds(text.as_bytes()), None, "{text}");
        }
        assert!(is_day(b"2024-01-02") && !is_day(b"2024-01-99") && !is_day(b"1024"));
    }

    /// Day by day, from the calendar's rules.
    #[test]
    fn each_day_follows_the_one_before() {
        let mut count = 0;
        for year in 1970..2401 {
            for month in 1..=12 {
                for day in 1..=31 {
                    let Some(found) = days(year, month, day) else {
                        continue;
                    };
                    assert_eq!(found, count, "{year}-{month}-{day}");
                    count += 1;
                }
            }
        }
        // 400 years have 97 leap days.
        let of_400_years = 400 * 365 + 97;
        assert_eq!(count, of_400_years + days(2001, 1, 1).expect("a day"));
    }
}
