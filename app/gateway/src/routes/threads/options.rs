//! Options shared by several thread routes: time to live, and values extracted for lists.

use chrono::TimeDelta;
use harness::runtime::runs::{Expiry, ThreadTtl};
use serde_json::{Map, Value};

use crate::error::Issue;
use crate::extract::Issues;

/// Maximum time to live, in minutes: a hundred years.
const MAX_TTL_MINUTES: f64 = 100.0 * 366.0 * 24.0 * 60.0;
/// Maximum number of values extracted from each thread of a list.
const MAX_EXTRACTED: usize = 10;

/// Reads a thread's time to live after its last change: `{"ttl": <minutes>, "strategy":
/// "keep_latest"}`, or the minutes alone.
pub(super) fn read_ttl(sent: &Value, issues: &mut Issues) -> Option<ThreadTtl> {
    let (minutes, then) = match sent {
        Value::Null => return None,
        Value::Object(ttl) => {
            let then = match ttl.get("strategy") {
                None => Some(Expiry::default()),
                Some(sent) => Expiry::WORDS
                    .iter()
                    .find(|(word, _)| sent == word)
                    .map(|(_, then)| *then),
            };
            let Some(then) = then else {
                return issues.refuse(
                    "literal_error",
                    "ttl",
                    "ttl strategy should be 'delete' or 'keep_latest'",
                    sent,
                );
            };
            (ttl.get("ttl")?, then)
        }
        minutes => (minutes, Expiry::default()),
    };
    match minutes
        .as_f64()
        .filter(|minutes| *minutes > 0.0 && *minutes <= MAX_TTL_MINUTES)
    {
        Some(minutes) => Some(ThreadTtl {
            after: TimeDelta::microseconds((minutes * 60_000_000.0) as i64),
            then,
        }),
        None => issues.refuse(
            "ttl_type",
            "ttl",
            "ttl should be a number of minutes greater than 0",
            sent,
        ),
    }
}

/// Reads the values to extract from each thread, by alias: paths such as `metadata.owner` or
/// `values.messages[-1].content`.
pub(super) fn read_extract(
    sent: Map<String, Value>,
    issues: &mut Issues,
) -> Vec<(String, Vec<Segment>)> {
    if sent.len() > MAX_EXTRACTED {
        let text = format!("extract should have at most {MAX_EXTRACTED} entries");
        let _none: Option<()> =
            issues.refuse("too_long", "extract", text, &Value::from(sent.len()));
        return Vec::new();
    }
    let mut extract = Vec::with_capacity(sent.len());
    for (alias, path) in sent {
        match path.as_str().and_then(read_path) {
            Some(path) => extract.push((alias, path)),
            None => {
                let loc = vec!["body".into(), "extract".into(), alias.into()];
                issues.push(Issue::new(
                    "extract_path",
                    loc,
                    "should be a path such as metadata.owner or values.messages[-1].content",
                    &path,
                ));
            }
        }
    }
    extract
}

/// One segment of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Segment {
    /// Key of an object.
    Key(String),
    /// Index of a list, from its end if negative.
    Index(i64),
}

/// Parts of a thread that a path can begin with.
const ROOTS: &[&str] = &["metadata", "values", "config", "interrupts", "error"];

fn read_path(text: &str) -> Option<Vec<Segment>> {
    let mut path = Vec::new();
    for part in text.split('.') {
        let (key, mut rest) = part.split_at(part.find('[').unwrap_or(part.len()));
        if key.is_empty() {
            return None;
        }
        path.push(Segment::Key(key.to_owned()));
        while !rest.is_empty() {
            let (index, after) = rest.strip_prefix('[')?.split_once(']')?;
            path.push(Segment::Index(index.parse().ok()?));
            rest = after;
        }
    }
    let rooted = path.len() > 1
        && matches!(path.first(), Some(Segment::Key(root)) if ROOTS.contains(&root.as_str()));
    rooted.then_some(path)
}

/// Returns the value at a path, or null.
pub(super) fn value_at(thread: &Value, path: &[Segment]) -> Value {
    let step = |at: &'_ Value, segment: &Segment| -> Option<Value> {
        match segment {
            Segment::Key(key) => at.get(key).cloned(),
            Segment::Index(index) => {
                let items = at.as_array()?;
                let position = if *index < 0 {
                    i64::try_from(items.len()).ok()? + index
                } else {
                    *index
                };
                items.get(usize::try_from(position).ok()?).cloned()
            }
        }
    };
    let Some((first, rest)) = path.split_first() else {
        return Value::Null;
    };
    let begin = step(thread, first);
    rest.iter()
        .fold(begin, |at, segment| step(&at?, segment))
        .unwrap_or_default()
}

/// Returns all extracted values of a thread.
pub(super) fn extracted(thread: &Value, extract: &[(String, Vec<Segment>)]) -> Map<String, Value> {
    extract
        .iter()
        .map(|(alias, path)| (alias.clone(), value_at(thread, path)))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::dialect::Dialect;
    use crate::extract::Body;
    use crate::requests::bodies::ThreadPatch;

    use super::*;

    #[test]
    fn path_selects_keys_and_indices_from_both_ends() {
        let thread = json!({ "metadata": { "a": { "b": 1 } }, "values": { "messages": [{ "content": "x" }, { "content": "y" }] } });
        for (path, value) in [
            ("metadata.a.b", json!(1)),
            ("metadata.a", json!({ "b": 1 })),
            ("metadata.c.d", json!(null)),
            ("values.messages[0].content", json!("x")),
            ("values.messages[-1].content", json!("y")),
            ("values.messages[9].content", json!(null)),
            ("values.messages[-9]", json!(null)),
        ] {
            assert_eq!(
                value_at(&thread, &read_path(path).unwrap()),
                value,
                "{path}"
            );
        }
        for bad in [
            "",
            "metadata",
            "metadata.",
            ".a",
            "values.messages[x]",
            "values.messages[0",
            "secret.a",
            "values.a[0]b",
        ] {
            assert_eq!(read_path(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn ttl_is_validated() {
        let read = |ttl: Value| {
            let body = Map::from_iter([("ttl".to_owned(), ttl)]);
            let (body, mut issues) = Body::<ThreadPatch>::new(body, Dialect::Platform).parts();
            let ttl = read_ttl(&body.ttl, &mut issues);
            issues
                .finish()
                .map(|()| ttl.map(|ttl| (ttl.after.num_milliseconds(), ttl.then.as_str())))
                .map_err(|_| ())
        };
        assert_eq!(read(json!({ "ttl": 5 })), Ok(Some((300_000, "delete"))));
        assert_eq!(
            read(json!({ "ttl": 0.5, "strategy": "keep_latest" })),
            Ok(Some((30_000, "keep_latest")))
        );
        assert_eq!(read(json!(2)), Ok(Some((120_000, "delete"))));
        assert_eq!(read(json!(null)), Ok(None));
        assert_eq!(read(json!({})), Ok(None));
        for bad in [
            json!({ "ttl": null }),
            json!({ "ttl": 0 }),
            json!({ "ttl": "5" }),
            json!(-1),
            json!(1e300),
            json!([5]),
            json!({ "ttl": 5, "strategy": "keep" }),
        ] {
            assert_eq!(read(bad.clone()), Err(()), "{bad}");
        }
    }
}
