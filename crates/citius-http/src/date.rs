//! The `Date` of a response (IMF-fixdate, RFC 9110 §5.6.7), from seconds since 1970.

/// Bytes of an IMF-fixdate.
pub const IMF_FIXDATE_BYTES: usize = 29;

/// `seconds` since 1970-01-01T00:00:00Z as in `Sun, 06 Nov 1994 08:49:37 GMT`.
#[expect(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    reason = "calendar arithmetic on u64 seconds: divisors are constants and every term is small"
)]
pub fn imf_fixdate(seconds: u64) -> [u8; IMF_FIXDATE_BYTES] {
    const DAYS: [&[u8; 3]; 7] = [b"Thu", b"Fri", b"Sat", b"Sun", b"Mon", b"Tue", b"Wed"];
    const MONTHS: [&[u8; 3]; 12] = [
        b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov",
        b"Dec",
    ];
    let (days, second_of_day) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil_from_days(days);
    let mut text = *b"Thu, 01 Jan 1970 00:00:00 GMT";
    let mut put = |at: usize, bytes: &[u8]| {
        for (slot, byte) in text.iter_mut().skip(at).zip(bytes) {
            *slot = *byte;
        }
    };
    let two = |n: u64| [b'0' + (n / 10 % 10) as u8, b'0' + (n % 10) as u8];
    put(0, DAYS.get((days % 7) as usize).copied().unwrap_or(b"Thu"));
    put(5, &two(day));
    put(8, MONTHS.get(month as usize - 1).copied().unwrap_or(b"Jan"));
    put(12, &two(year / 100));
    put(14, &two(year % 100));
    put(17, &two(second_of_day / 3600));
    put(20, &two(second_of_day / 60 % 60));
    put(23, &two(second_of_day % 60));
    text
}

/// Year, month (1…12) and day (1…31) of the day `days` after 1970-01-01, in the Gregorian calendar.
///
/// Counts from 0000-03-01, so that the leap day is the last of its year.
#[expect(
    clippy::arithmetic_side_effects,
    reason = "days since 1970 are far from overflow"
)]
pub fn civil_from_days(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_known_dates() {
        for (seconds, text) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (4_102_444_799, "Thu, 31 Dec 2099 23:59:59 GMT"),
            (1_709_164_800, "Thu, 29 Feb 2024 00:00:00 GMT"),
        ] {
            assert_eq!(core::str::from_utf8(&imf_fixdate(seconds)), Ok(text));
        }
    }
}
