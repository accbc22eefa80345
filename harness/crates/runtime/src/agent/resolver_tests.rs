//! Tests of the default methods of agent resolvers.

use super::*;

/// Resolver of a crate that implements only the required methods.
#[derive(Debug)]
struct Listed(&'static [&'static str]);

#[async_trait]
impl AgentResolver for Listed {
    async fn resolve(
        &self,
        assistant: &str,
        _options: &Map<String, Value>,
    ) -> Result<Arc<dyn Agent>, UnknownAssistant> {
        Err(UnknownAssistant::NotFound(assistant.to_owned()))
    }

    async fn list(&self) -> Vec<AssistantInfo> {
        let info = |name: &&str| AssistantInfo {
            name: (*name).to_owned(),
            description: None,
        };
        self.0.iter().map(info).collect()
    }
}

#[tokio::test]
async fn default_lookups_agree_with_the_list() {
    let resolver = Listed(&["a", "b"]);
    let all = resolver.list().await;
    assert_eq!(resolver.find("b").await.as_ref(), Some(&all[1]));
    assert_eq!(resolver.find("c").await, None);
    assert_eq!(resolver.default_assistant().await.as_ref(), Some(&all[0]));
    let details: Vec<AssistantDetails> = all.into_iter().map(Into::into).collect();
    assert_eq!(resolver.details("a").await.as_ref(), Some(&details[0]));
    assert_eq!(resolver.details("c").await, None);
    assert_eq!(resolver.list_details().await, details);
    assert_eq!(Listed(&[]).default_assistant().await, None);
}
