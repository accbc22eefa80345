//! Measures the reduction of message lists by their length: the time must grow linearly.
//!
//! `cargo run --release -p deerflow-harness --example reducer_cost --no-default-features`
#![expect(clippy::print_stdout, reason = "this program prints to the terminal")]

use std::error::Error;
use std::time::Instant;

use deerflow_harness as harness;
use harness::ids::SystemIds;
use harness::messages::Message;
use harness::state::{StateUpdate, ThreadState};

const LENGTHS: [usize; 6] = [1_000, 10_000, 25_000, 50_000, 100_000, 200_000];

fn main() -> Result<(), Box<dyn Error>> {
    println!(
        "{:>9} {:>14} {:>14} {:>14} {:>12}",
        "messages", "append us", "replace us", "remove half us", "ns a message"
    );
    for length in LENGTHS {
        let ids = SystemIds::default();
        let mut state = ThreadState::default();
        let mut total = 0;
        let mut timed = |update: StateUpdate| -> Result<u128, Box<dyn Error>> {
            let began = Instant::now();
            state.apply(update, &ids)?;
            total += began.elapsed().as_nanos();
            Ok(began.elapsed().as_micros())
        };
        let append = timed(StateUpdate::messages(named(length, "one")))?;
        let replace = timed(StateUpdate::messages(named(length, "two")))?;
        let remove = timed(StateUpdate::messages(
            (0..length)
                .step_by(2)
                .map(|n| Message::remove(format!("m{n}"))),
        ))?;
        println!(
            "{length:>9} {append:>14} {replace:>14} {remove:>14} {:>12}",
            total / (length as u128)
        );
    }
    Ok(())
}

fn named(length: usize, text: &str) -> Vec<Message> {
    (0..length)
        .map(|n| Message::human(text).with(|body| body.id = Some(format!("m{n}"))))
        .collect()
}
