//! Ceilings of the cost of a run in a debug build of the real binary, with one client.

#![cfg(target_os = "linux")]

mod calibration;
mod ceilings;
mod scenarios;

use self::ceilings::{CEILINGS, exceeded};
use self::scenarios::{Gateway, Scenario};

#[tokio::test]
async fn costs_of_runs_stay_below_their_ceilings() {
    let gateway = Gateway::start().await;
    let mut faults = Vec::new();
    for scenario in Scenario::ALL {
        let costs = gateway.measure(scenario).await;
        for ceiling in CEILINGS.iter().filter(|row| row.scenario == scenario) {
            let costs_of: Vec<f64> = costs.iter().map(|batch| ceiling.figure.of(batch)).collect();
            println!("{ceiling}: {costs_of:.2?}");
            faults.extend(exceeded(ceiling, &costs));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
