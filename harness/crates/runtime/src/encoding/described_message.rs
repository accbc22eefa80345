//! Metadata of a message in events.

use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::run_facts::RunFacts;
use crate::agent::MessageMeta;

/// Name of the field with the number of the attempt.
const RUN_ATTEMPT: &str = "run_attempt";
/// Name of the field with the kind of the server, which LangGraph Platform sends with each message
/// of a run.
const HOST_KEY: &str = "langgraph_host";
/// Kind of this server.
const HOST: &str = "self-hosted";

/// Metadata of a message, merged over the metadata of its run if there is one.
#[derive(Debug, Clone, Copy)]
pub(super) struct DescribedMessage<'a> {
    pub(super) meta: &'a MessageMeta,
    pub(super) run: Option<&'a RunFacts>,
}

/// Both metadata without a common field.
#[derive(Serialize)]
struct Joined<'a> {
    #[serde(flatten)]
    run: &'a Map<String, Value>,
    run_attempt: u32,
    langgraph_host: &'static str,
    #[serde(flatten)]
    meta: &'a MessageMeta,
}

impl Serialize for DescribedMessage<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Some(run) = self.run else {
            return self.meta.serialize(serializer);
        };
        if self.has_common_field(run) {
            return merged(self.meta, run).serialize(serializer);
        }
        let joined = Joined {
            run: &run.metadata,
            run_attempt: run.attempt,
            langgraph_host: HOST,
            meta: self.meta,
        };
        joined.serialize(serializer)
    }
}

impl DescribedMessage<'_> {
    fn has_common_field(&self, run: &RunFacts) -> bool {
        let is_common = |key: &String| {
            [RUN_ATTEMPT, HOST_KEY].contains(&key.as_str())
                || MessageMeta::FIELDS.contains(&key.as_str())
                || self.meta.extra.contains_key(key)
        };
        run.metadata.keys().any(is_common)
    }
}

/// Returns the fields of the run, replaced by those of the message with the same name.
fn merged(meta: &MessageMeta, run: &RunFacts) -> Map<String, Value> {
    let mut fields = run.metadata.clone();
    fields.insert(RUN_ATTEMPT.to_owned(), run.attempt.into());
    fields.insert(HOST_KEY.to_owned(), HOST.into());
    if let Value::Object(message_fields) = json!(meta) {
        fields.extend(message_fields);
    }
    fields
}

#[cfg(test)]
mod tests {
    use deerflow_core::ids::{RunId, ThreadId};

    use super::*;

    fn run(metadata: Value) -> RunFacts {
        RunFacts {
            run_id: RunId::parse("r").unwrap(),
            thread_id: ThreadId::parse("t").unwrap(),
            attempt: 2,
            assistant: "a".to_owned(),
            metadata: metadata.as_object().cloned().unwrap_or_default(),
        }
    }

    fn meta() -> MessageMeta {
        let extra = Map::from_iter([("model_name".to_owned(), json!("m"))]);
        MessageMeta {
            thread_id: "t".to_owned(),
            langgraph_step: 1,
            extra,
            ..MessageMeta::default()
        }
    }

    #[test]
    fn fields_of_the_message_replace_those_of_the_run() {
        let meta = meta();
        for own in [
            json!({}),
            json!({ "k": { "deep": [1] }, "z": null }),
            json!({ "run_attempt": 7, "k": 1 }),
            json!({ "langgraph_host": "other" }),
            json!({ "langgraph_step": 9, "checkpoint_ns": "other", "k": 1 }),
            json!({ "k": 1, "model_name": "other" }),
        ] {
            let run = run(own);
            let described = DescribedMessage {
                meta: &meta,
                run: Some(&run),
            };
            let merged = json!(merged(&meta, &run));
            assert_eq!(
                serde_json::to_string(&described).unwrap(),
                merged.to_string()
            );
        }
    }

    #[test]
    fn fields_of_metadata_are_known() {
        let Value::Object(fields) = json!(MessageMeta::default()) else {
            panic!("metadata is no object");
        };
        assert!(fields.keys().eq(MessageMeta::FIELDS));
    }

    #[test]
    fn message_without_a_run_has_its_own_fields() {
        let (meta, run) = (meta(), None);
        assert_eq!(json!(DescribedMessage { meta: &meta, run }), json!(meta));
    }
}
