//! Checks dependencies between crates: normal, dev- and build-dependencies alike.

use cargo_metadata::{Dependency, DependencyKind, Package};

use super::rules::{CRATES, HOME, RESTRICTED};
use crate::report::Violation;
use crate::workspace::Workspace;

pub(super) fn check(workspace: &Workspace) -> Vec<Violation> {
    let mut violations = Vec::new();
    for package in workspace.packages() {
        let manifest = workspace.relative(&package.manifest_path);
        let Some(allowed) = allowed_for(&package.name) else {
            violations.push(Violation::new(
                manifest.as_str(),
                format!("{} has no row in {HOME}", package.name),
            ));
            continue;
        };
        for dependency in &package.dependencies {
            if let Some(problem) = check_dependency(package, dependency, allowed) {
                let edge = format!(
                    "{} -> {} ({}, {manifest})",
                    package.name,
                    dependency.name,
                    describe(dependency.kind),
                );
                violations.push(Violation::new(edge, problem));
            }
        }
    }
    violations
}

fn check_dependency(
    package: &Package,
    dependency: &Dependency,
    allowed: &[&str],
) -> Option<String> {
    let (from, to) = (package.name.as_str(), dependency.name.as_str());
    let ours = dependency.path.is_some() || allowed_for(to).is_some();
    if ours {
        let fine = from == to || allowed.contains(&to);
        return (!fine)
            .then(|| format!("{from} may depend on {}", list("no crate of ours", allowed)));
    }
    let (family, homes) = RESTRICTED
        .iter()
        .find(|(family, _)| is_of_family(to, family))?;
    (!homes.contains(&from)).then(|| format!("{family} is for {} only", list("no crate", homes)))
}

fn allowed_for(name: &str) -> Option<&'static [&'static str]> {
    CRATES
        .iter()
        .find(|(row, _)| *row == name)
        .map(|(_, allowed)| *allowed)
}

fn is_of_family(name: &str, family: &str) -> bool {
    name.strip_prefix(family)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '_']))
}

fn describe(kind: DependencyKind) -> &'static str {
    match kind {
        DependencyKind::Development => "dev-dependency",
        DependencyKind::Build => "build-dependency",
        _ => "dependency",
    }
}

fn list(when_empty: &str, names: &[&str]) -> String {
    if names.is_empty() {
        when_empty.to_owned()
    } else {
        names.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn family_covers_name_and_dashed_extensions() {
        assert!(is_of_family("axum", "axum"));
        assert!(is_of_family("sea-orm-migration", "sea-orm"));
        assert!(!is_of_family("axumatic", "axum"));
        assert!(!is_of_family("tower-axum", "axum"));
    }

    #[test]
    fn every_crate_named_in_the_tables_has_a_row() {
        let named = CRATES
            .iter()
            .chain(RESTRICTED)
            .flat_map(|(_, names)| *names);
        for name in named {
            assert!(allowed_for(name).is_some(), "{name} has no row");
        }
    }
}
