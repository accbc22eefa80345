//! Parses schedules: each occurrence of a valid one is later than the one before.
#![no_main]

use chrono::DateTime;
use deerflow_domain::crons::Schedule;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let (fields, zone) = text.split_once('\n').map_or((text, None), |(fields, zone)| (fields, Some(zone)));
    let Ok(schedule) = Schedule::parse(fields, zone) else { return };
    let mut at = DateTime::UNIX_EPOCH;
    for _ in 0..4 {
        let Some(next) = schedule.next(at, None) else { return };
        assert!(next > at, "{next} is not after {at}");
        at = next;
    }
});
