//! Check of the system flows.

use std::sync::Arc;

use deerflow_gateway::flows::FlowRules;
use harness::clock::{Clock, SystemClock};
use harness::config_file::Loaded;

use super::report::Finding;
use crate::commands::flow::finding_line;
use crate::flows::{BuiltInKinds, folder_of, snapshot};

/// Returns one finding per file of the folder that is not valid, and the number of valid flows; none
/// for an empty folder.
pub(super) fn flows(loaded: &Loaded) -> Vec<Finding> {
    let subject = "flows";
    let folder = folder_of(&loaded.config.flows, loaded.path.as_deref());
    let rules = FlowRules::new(Arc::new(BuiltInKinds::default()));
    let found = match snapshot(&folder, &rules, SystemClock.now()) {
        Ok(found) => found,
        Err(error) => {
            let found = format!("{} cannot be read: {error}", folder.display());
            let fix = "make the folder readable, or set `flows.path` to another one";
            return vec![Finding::warn(subject, found, fix)];
        }
    };
    let broken = found.problems.iter().map(|problem| {
        let path = folder.join(&problem.path);
        let first = problem.errors.first();
        let found = first.map(|error| finding_line(&path.display(), "error", error));
        let fix = "`deerflow flow check FILE` lists all problems of a file";
        Finding::warn(subject, found.unwrap_or_default(), fix)
    });
    let valid = (!found.flows.is_empty()).then(|| {
        let valid = format!("{} valid in {}", found.flows.len(), folder.display());
        Finding::ok(subject, valid)
    });
    broken.chain(valid).collect()
}
