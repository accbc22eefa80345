//! A fixed computation, whose CPU time stands for the speed of the machine.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

/// Repetitions of the computation.
const REPETITIONS: usize = 40;

/// Returns the CPU time of the calling thread for JSON, maps and hashes, which is what a run mainly
/// consists of. Waiting for a processor does not count.
pub(crate) fn cpu_time() -> Duration {
    let before = thread_time();
    for repetition in 0..REPETITIONS {
        std::hint::black_box(compute(repetition));
    }
    thread_time().saturating_sub(before)
}

fn compute(seed: usize) -> usize {
    let messages: Vec<Value> = (0..50)
        .map(|place| json!({ "type": "human", "id": format!("{seed}-{place}"), "content": "text ".repeat(20) }))
        .collect();
    let text = json!({ "messages": messages }).to_string();
    let parsed: Value = serde_json::from_str(&text).unwrap_or_default();
    let list = parsed["messages"].as_array().cloned().unwrap_or_default();
    let by_id: BTreeMap<String, Value> = list
        .into_iter()
        .map(|message| (message["id"].to_string(), message))
        .collect();
    by_id.keys().map(String::len).sum()
}

/// Returns the time that the calling thread has used a processor.
fn thread_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text
        .split_whitespace()
        .next()
        .and_then(|time| time.parse().ok());
    Duration::from_nanos(nanoseconds.expect("scheduler statistics of the kernel"))
}
