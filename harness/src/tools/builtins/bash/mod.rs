//! `bash`: runs a shell command in the thread's sandbox.

mod chunks;
mod streaming;

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use self::streaming::{OutputStreamer, TeeOutput};
use super::files_of;
use crate::sandbox::{
    CommandRequest, CommandSandbox, FileHome, Isolation, Reach, Redacting, Secrets, SkillMounts,
    Transcript, masking, render,
};
use crate::tools::{Tool, ToolContext, ToolError, ToolOutput};

/// Bytes retained of each end of an output if no limit is set.
const DEFAULT_RETAINED_BYTES: usize = 5 << 20;
/// Maximum length of an encoded character, in bytes.
const BYTES_PER_CHAR: usize = 4;
/// Maximum length of the host list in the description, in characters.
const MAX_HOSTS_CHARS: usize = 600;

/// Runs a shell command.
#[derive(Debug, Clone)]
pub struct Bash {
    home: FileHome,
    sandbox: Arc<dyn CommandSandbox>,
    time_limit: Duration,
    max_chars: usize,
    description: String,
    secrets: Secrets,
}

impl Bash {
    /// Creates the tool for a sandbox. A command may run for `time_limit` and its result has at
    /// most `max_chars` characters (0: no limit).
    pub fn new(
        home: FileHome,
        sandbox: Arc<dyn CommandSandbox>,
        time_limit: Duration,
        max_chars: usize,
    ) -> Self {
        let environment = match sandbox.isolation() {
            Isolation::Kernel => {
                "in a sandbox that holds a read-only system and this conversation's folders"
            }
            Isolation::Container => "in a container that holds this conversation's folders",
            Isolation::None => {
                "on the server itself: change nothing outside of this conversation's folders"
            }
        };
        let scripts = match sandbox.isolation() {
            Isolation::Kernel | Isolation::Container => "",
            Isolation::None => {
                " Only the command itself may say /mnt/user-data: a script finds the folders by $DEER_FLOW_WORKSPACE, $DEER_FLOW_UPLOADS \
                 and $DEER_FLOW_OUTPUTS."
            }
        };
        let reach = match sandbox.reach() {
            Reach::Nothing => " There is no network.".to_owned(),
            Reach::Proxied(hosts) => format!(
                " Of the network it reaches {}, by HTTP and HTTPS through the proxy that $http_proxy names; names are looked up by the \
                 proxy alone.",
                shortened(&hosts)
            ),
            Reach::Everything => String::new(),
        };
        let seconds = time_limit.as_secs();
        let description = format!(
            "Run a command with bash {environment}. It begins in /mnt/user-data/workspace, reads no input and may take {seconds} seconds.{reach}{scripts} \
             Files in the folders stay; variables, background processes and /tmp end with the call, so put what belongs together in one \
             command. Use it for programs, conversions and calculations; to look at, search, write or change files the file tools \
             are better. The result is what was printed, then the exit code unless it is 0; long output loses its middle."
        );
        Self {
            home,
            sandbox,
            time_limit,
            max_chars,
            description,
            secrets: Secrets::default(),
        }
    }

    /// Redacts these secrets from results.
    #[must_use]
    pub fn without(mut self, secrets: Secrets) -> Self {
        self.secrets = secrets;
        self
    }
}

/// Shortens the host list, because the model reads it with every call.
fn shortened(hosts: &str) -> String {
    match hosts.char_indices().nth(MAX_HOSTS_CHARS) {
        Some((end, _)) => format!("{}.. and more", &hosts[..end]),
        None => hosts.to_owned(),
    }
}

/// Arguments of `bash`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct BashArgs {
    /// Why you run it, in a few words; shown to the user.
    #[serde(default, rename = "description")]
    pub _description: String,
    /// The command, as you would type it into bash. Use absolute paths under /mnt/user-data.
    pub command: String,
}

impl Tool for Bash {
    type Args = BashArgs;

    fn name(&self) -> &str {
        "bash"
    }

    fn description(&self) -> &str {
        &self.description
    }

    async fn call(&self, args: BashArgs, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let files = files_of(&self.home, ctx);
        let dirs = files.blocking().dirs();
        let retained_bytes = if self.max_chars == 0 {
            DEFAULT_RETAINED_BYTES
        } else {
            self.max_chars.saturating_mul(BYTES_PER_CHAR)
        };
        let mut transcript = Transcript::with_limit(retained_bytes);
        let skills = files.skill_mounts().await.unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot load the user's skills, running the command without them");
            SkillMounts::default()
        });
        let request = CommandRequest {
            dirs,
            shelf: &skills,
            command: &args.command,
            time_limit: self.time_limit,
        };
        let mask = |text: String| masking::to_virtual(&text, dirs, &skills);
        let live = self
            .sandbox
            .prints_live()
            .then(|| OutputStreamer::of(ctx, self.name(), dirs, &skills, self.max_chars));
        let mut watched = TeeOutput {
            output: &mut transcript,
            live: live.as_ref(),
        };
        let mut redacting = Redacting::new(&mut watched, &self.secrets);
        let running = self.sandbox.run(request, &mut redacting);
        let end = match &live {
            Some(live) => live.run_streaming(running).await,
            None => running.await,
        };
        redacting.finish();
        if let Some(live) = live {
            live.finish();
        }
        let end = end.map_err(|error| ToolError::for_model(mask(render::error(&error))))?;
        let text = render::command(
            &mask(transcript.out()),
            &mask(transcript.err()),
            end,
            self.time_limit,
            self.max_chars,
        );
        Ok(ToolOutput::text(text))
    }
}

#[cfg(test)]
#[path = "bash_tests.rs"]
mod tests;
