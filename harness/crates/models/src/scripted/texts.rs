//! Texts of the scripted model.

use super::script::Script;
use crate::ModelInfo;

/// Demo script that calls harmless tools. Tools that are not offered are skipped.
pub(super) const DEMO: &str = r#"[[tool:ls {"description":"See what is in the workspace","path":"/mnt/user-data/workspace"}]]
[[tool:write_file {"description":"Write a short note for the user","path":"/mnt/user-data/outputs/hello.md","content":"Hello from DeerFlow.\n\nThe built-in scripted model asked for this file; the agent wrote it.\n"}]]
[[tool:present_files {"filepaths":["/mnt/user-data/outputs/hello.md"]}]]
then say That was the agent at work: each step above was a real tool call, run in this thread's own sandbox. I am only the built-in scripted model and followed a fixed plan; with a real model in `config.yaml` the same agent plans for itself."#;

const WELCOME: &str = "\
Hello! DeerFlow is running, and this answer comes from its built-in scripted model: it needs no account, and it only follows instructions written in the message.

To talk to a real model, add an entry to `models` in `config.yaml`; the first one is the default:

```yaml
models:
  - name: my-model
    use: langchain_openai:ChatOpenAI
    model: gpt-4o-mini
    api_key: $OPENAI_API_KEY
    # base_url: https://...   any OpenAI-compatible server
```

To see the agent use its tools now, send `show me a demo`, or say exactly what to call:

`[[tool:ls {\"description\":\"look around\",\"path\":\"/mnt/user-data/workspace\"}]] then say That is all.`";

/// Reports whether the user requests a demonstration.
pub(super) fn requests_demo(words: &str) -> bool {
    let words = words.to_lowercase();
    words.contains("演示")
        || words
            .split(|c: char| !c.is_alphanumeric())
            .any(|word| matches!(word, "demo" | "demonstrate" | "demonstration"))
}

/// Returns the text of the final turn.
pub(super) fn final_text(script: &Script, info: &ModelInfo) -> String {
    match &script.say {
        Some(text) => text.clone(),
        None if script.directed && script.plain_text.is_empty() => "done".to_owned(),
        None if script.directed => script.plain_text.clone(),
        None => format!("{WELCOME}\n\n(model entry: `{}`)", info.name),
    }
}
