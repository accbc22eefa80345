//! `describe_skill`: describes skills of which the system prompt contains only the names.

use regex::RegexBuilder;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::skills::{Skill, SkillChoice, Skills};
use crate::tools::{Effect, Tool, ToolContext, ToolError, ToolOutput};

/// Name of the tool.
pub const DESCRIBE_SKILL: &str = "describe_skill";
/// Maximum number of results of a search; skills that the query names are not limited.
const MAX_RESULTS: usize = 5;
/// Maximum size of a compiled pattern, in bytes.
const MAX_PATTERN_BYTES: usize = 64 << 10;

/// Describes skills.
#[derive(Debug, Clone)]
pub struct DescribeSkill {
    /// Skills of all users.
    pub skills: Skills,
    /// Skills that the agent may use.
    pub choice: SkillChoice,
}

/// Arguments of `describe_skill`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct DescribeSkillArgs {
    /// `select:a,b` for skills by name, `+word more words` for those with the word in their name, or any words or pattern to search for.
    pub name: String,
}

impl Tool for DescribeSkill {
    type Args = DescribeSkillArgs;

    fn name(&self) -> &str {
        DESCRIBE_SKILL
    }

    fn description(&self) -> &str {
        "Look up what skills are for and where their files lie. Use it when a name in the list of skills may fit the request, then \
         read the file with read_file."
    }

    fn effect(&self, _args: &DescribeSkillArgs) -> Effect {
        Effect::Pure
    }

    async fn call(
        &self,
        args: DescribeSkillArgs,
        ctx: &ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let skills = self
            .skills
            .usable(&ctx.run.actor.user_id, &self.choice)
            .await;
        let skills = skills.map_err(|error| ToolError::for_model(format!("Error: {error}")))?;
        let found: Vec<String> = search(&skills, args.name.trim())
            .into_iter()
            .map(described)
            .collect();
        if found.is_empty() {
            return Ok(ToolOutput::text(
                "No skill fits. The names are in the list of skills.",
            ));
        }
        Ok(ToolOutput::text(found.join("\n\n")))
    }
}

fn described(skill: &Skill) -> String {
    format!(
        "{}\n{}\n{}",
        skill.name(),
        skill.head.description,
        skill.file()
    )
}

/// Returns the skills that match a query, the best match first.
fn search<'a>(skills: &'a [Skill], query: &str) -> Vec<&'a Skill> {
    if let Some(names) = query.strip_prefix("select:") {
        let names: Vec<&str> = names.split(',').map(str::trim).collect();
        return skills
            .iter()
            .filter(|skill| names.contains(&skill.name()))
            .collect();
    }
    let (required, rest) = match query.strip_prefix('+') {
        Some(query) => query.split_once(char::is_whitespace).unwrap_or((query, "")),
        None => ("", query),
    };
    let pattern = |text: &str| {
        RegexBuilder::new(text)
            .case_insensitive(true)
            .size_limit(MAX_PATTERN_BYTES)
            .build()
    };
    let Ok(pattern) = pattern(rest.trim()).or_else(|_| pattern(&regex::escape(rest.trim()))) else {
        return Vec::new();
    };
    let required = required.to_lowercase();
    let hits = |skill: &Skill| {
        let (in_name, in_text) = (
            pattern.find_iter(skill.name()).count(),
            pattern.find_iter(&skill.head.description).count(),
        );
        (in_name.min(1), in_name + in_text)
    };
    let named = skills
        .iter()
        .filter(|skill| skill.name().to_lowercase().contains(&required));
    let mut ranked: Vec<_> = named.map(|skill| (hits(skill), skill)).collect();
    if required.is_empty() {
        ranked.retain(|((_, hits), _)| *hits > 0);
    }
    ranked.sort_by_key(|(hits, _)| std::cmp::Reverse(*hits));
    ranked
        .into_iter()
        .take(MAX_RESULTS)
        .map(|(_, skill)| skill)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::MountedSkill;
    use crate::sandbox::virtual_paths::RelativePath;
    use crate::skills::Category;
    use crate::skills::frontmatter::Frontmatter;

    fn skill(name: &str, description: &str) -> Skill {
        let head = Frontmatter {
            name: name.to_owned(),
            description: description.to_owned(),
            ..Frontmatter::default()
        };
        let folder = MountedSkill {
            path: RelativePath::parse("public/x").unwrap(),
            host: "/x".into(),
        };
        Skill {
            head,
            category: Category::Public,
            enabled: true,
            folder,
        }
    }

    #[test]
    fn queries_select_require_and_rank() {
        let skills = [
            skill("charts", "draw data"),
            skill("data-analysis", "numbers and data"),
            skill("deep-research", "the web"),
            skill("cpp", "code in c++ (new)"),
        ];
        let names = |query: &str| {
            search(&skills, query)
                .into_iter()
                .map(Skill::name)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            names("select:charts, deep-research,none"),
            ["charts", "deep-research"]
        );
        assert_eq!(names("DATA"), ["data-analysis", "charts"]);
        assert_eq!(names("+data draw"), ["data-analysis"]);
        assert_eq!(
            names("C++ (new"),
            ["cpp"],
            "an invalid pattern is literal text"
        );
        assert!(names("nothing").is_empty());
    }
}
