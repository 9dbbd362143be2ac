//! Days to dates.

/// A day of the proleptic Gregorian calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Civil {
    /// The year; 0 is 1 BC.
    pub year: i32,
    /// 1 to 12.
    pub month: u8,
    /// 1 to 31.
    pub day: u8,
}

/// From 0000-03-01 to 2000-01-01, PostgreSQL's day 0.
const DAYS_TO_2000: i64 = 730_425;
const DAYS_PER_ERA: i64 = 146_097;

/// The date of a number of days since 2000-01-01.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an i32 of days is less than six million years"
)]
pub fn civil_of_days(days: i32) -> Civil {
    // Years begin in March, so that the leap day is the last of its year; eras are 400 years.
    let days = i64::from(days) + DAYS_TO_2000;
    let era = days.div_euclid(DAYS_PER_ERA);
    let day_of_era = days.rem_euclid(DAYS_PER_ERA);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 {
        march_month + 3
    } else {
        march_month - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    Civil {
        year: year as i32,
        month: month as u8,
        day: day as u8,
    }
}
