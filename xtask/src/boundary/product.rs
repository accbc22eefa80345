//! Checks that product code does not use test code.

use crate::report::Violation;
use crate::source::Crate;

/// Module with test code that other crates may use in their tests.
const TESTKIT: &str = "testkit";

pub(super) fn check(crates: &[Crate]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for crate_ in crates {
        for module in &crate_.modules {
            let imports = module.facts.imports.iter().map(|import| &import.path);
            for path in imports.chain(&module.facts.paths) {
                if path.segments.iter().any(|name| name == TESTKIT) {
                    violations.push(Violation::at(
                        crate_.path_of(module),
                        path.line,
                        format!(
                            "`{}` is for test code only: move what product code needs out of `{TESTKIT}`",
                            path.segments.join("::")
                        ),
                    ));
                }
            }
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> usize {
        let texts = [("a/src/lib.rs".into(), text.to_owned())];
        check(&[Crate::read("a", "a/src".into(), texts).unwrap()]).len()
    }

    #[test]
    fn testkit_in_product_code_is_reported() {
        assert_eq!(problems("use crate::{testkit::scripted};"), 1);
        assert_eq!(problems("fn f() { deerflow_core::testkit::f() }"), 1);
        for gate in [
            "test",
            "feature = \"testkit\"",
            "any(test, feature = \"testkit\")",
        ] {
            let gated = format!("#[cfg({gate})] use crate::testkit::a; mod b;");
            assert_eq!(problems(&gated), 0, "{gate}");
        }
        assert_eq!(problems("#[cfg(not(test))] use crate::testkit::a;"), 1);
    }
}
