//! Settings of kinds: the keys of `config` that a run reads.

use super::built_in::KindDriver;
use crate::compiled::LoaderKind;
use crate::schema::BUDGETS;
use crate::schema::shape::{Field, Record, Shape, optional, required};

/// Settings of one kind and those that every kind has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KindSettings {
    /// Settings of the kind.
    pub(crate) own: &'static Record,
    /// Settings of all kinds.
    pub(crate) common: &'static Record,
}

/// Returns the settings of a kind.
pub(crate) fn settings_of(driver: KindDriver) -> KindSettings {
    let own = match driver {
        KindDriver::Agent => &AGENT,
        KindDriver::Loader(LoaderKind::WorkDir | LoaderKind::LocalDir) => &FOLDER,
        KindDriver::Loader(LoaderKind::HttpAuth) => &HTTP,
        KindDriver::Prompt => &PROMPT,
        KindDriver::PlanLoop => &PLAN_LOOP,
        KindDriver::Loop => &LOOP,
        KindDriver::Human => &HUMAN,
        KindDriver::Subflow => &SUBFLOW,
        KindDriver::Finish => &FINISH,
        KindDriver::Loader(LoaderKind::Input | LoaderKind::Custom)
        | KindDriver::Router
        | KindDriver::Parallel
        | KindDriver::Join => &NONE,
    };
    KindSettings {
        own,
        common: &COMMON,
    }
}

const COUNT: Shape = Shape::Integer(1, u64::MAX);

const fn record(name: &'static str, fields: &'static [Field]) -> Record {
    Record { name, fields }
}

static NONE: Record = record("NoSettings", &[]);

static COMMON: Record = record(
    "CommonSettings",
    &[
        optional(
            "join",
            Shape::OneOf(&["any", "all", "defer"]),
            "When the node starts.",
        ),
        optional(
            "retry",
            Shape::Record(&RETRY),
            "Retries after retryable failures.",
        ),
        optional(
            "onError",
            Shape::OneOf(&["fail", "continue", "branch"]),
            "Handling of a failure after the last retry.",
        ),
        optional(
            "defaultOutput",
            Shape::Any,
            "Output of a failed node with onError continue.",
        ),
    ],
);

static RETRY: Record = record(
    "Retry",
    &[
        optional(
            "maxAttempts",
            Shape::Integer(1, 100),
            "Maximum attempts; 1 if absent.",
        ),
        optional(
            "initialIntervalMs",
            Shape::Integer(0, 3_600_000),
            "Delay; 500 if absent.",
        ),
        optional(
            "backoffFactor",
            Shape::Number(1.0, 100.0),
            "Factor per attempt; 2 if absent.",
        ),
        optional(
            "maxIntervalMs",
            Shape::Integer(0, 3_600_000),
            "Maximum delay; 30000 if absent.",
        ),
        optional(
            "jitter",
            Shape::Bool,
            "Whether delays vary at random; true if absent.",
        ),
    ],
);

static AGENT: Record = record(
    "AgentSettings",
    &[
        optional(
            "agentId",
            Shape::Text,
            "Agent of a node that names none elsewhere.",
        ),
        // Checked with a code of its own.
        optional("turnMode", Shape::Any, "normal, plan or evaluate."),
        optional("systemPrompt", Shape::Text, "System prompt of the node."),
        optional("userPrompt", Shape::Text, "Directive to the agent."),
        optional(
            "evaluatePrompt",
            Shape::Text,
            "Rubric of an evaluating node.",
        ),
        optional("model", Shape::Text, "Model, before that of the agent."),
        optional(
            "temperature",
            Shape::Number(0.0, 2.0),
            "Temperature, likewise.",
        ),
        optional("maxTokens", COUNT, "Maximum tokens of an answer, likewise."),
        optional("timeoutMs", COUNT, "Limit of a turn, likewise."),
        optional("budgets", Shape::Record(&BUDGETS), "Budgets of the node."),
    ],
);

static FOLDER: Record = record(
    "FolderSettings",
    &[
        optional("directory", Shape::Text, "Folder."),
        optional("filePattern", Shape::Name, "Files; **/* if absent."),
        optional(
            "recursive",
            Shape::Bool,
            "Whether folders below are read; true if absent.",
        ),
        optional(
            "maxFileSize",
            COUNT,
            "Maximum bytes of a file; 10 MiB if absent.",
        ),
    ],
);

static HTTP: Record = record(
    "HttpSettings",
    &[
        required("url", Shape::Name, "Address."),
        optional(
            "method",
            Shape::OneOf(&["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"]),
            "Method; GET if absent.",
        ),
        optional("headers", Shape::Any, "Headers."),
        optional("body", Shape::Any, "Body."),
        optional(
            "authType",
            Shape::OneOf(&["none", "bearer", "basic", "apikey"]),
            "Kind of authentication; none if absent.",
        ),
        optional(
            "authToken",
            Shape::Any,
            "Credential, as {\"secret\": \"name\"}.",
        ),
        optional(
            "authHeader",
            Shape::Name,
            "Header of an API key; X-API-Key if absent.",
        ),
    ],
);

static PROMPT: Record = record(
    "PromptSettings",
    &[
        optional("promptText", Shape::Text, "Text."),
        optional("promptFile", Shape::Text, "File with more text."),
        optional(
            "mergeMode",
            Shape::OneOf(&["append", "prepend", "replace"]),
            "Place relative to the prompt of the run; append if absent.",
        ),
    ],
);

static PLAN_LOOP: Record = record(
    "PlanLoopSettings",
    &[
        optional(
            "maxIterations",
            COUNT,
            "Maximum execute rounds; 5 if absent.",
        ),
        optional(
            "completionThreshold",
            Shape::Number(0.0, 1.0),
            "Score; 0.8 if absent.",
        ),
        optional("evaluatePrompt", Shape::Text, "Rubric of evaluating nodes."),
    ],
);

static LOOP: Record = record(
    "LoopSettings",
    &[
        optional("maxIterations", COUNT, "Maximum rounds; 10 if absent."),
        optional(
            "condition",
            Shape::Text,
            "Condition to continue; always true if absent.",
        ),
    ],
);

static OPTION: Shape = Shape::Name;
/// Maximum options of a human node.
pub(super) const MAX_OPTIONS: usize = 100;

static HUMAN: Record = record(
    "HumanSettings",
    &[
        optional("prompt", Shape::Text, "Question."),
        optional(
            "options",
            Shape::List(&OPTION, 0, MAX_OPTIONS),
            "Options, each a handle.",
        ),
    ],
);

static SUBFLOW: Record = record(
    "SubflowSettings",
    &[required("flowId", Shape::Name, "Id of the flow.")],
);

static FINISH: Record = record(
    "FinishSettings",
    &[optional(
        "outputFormat",
        Shape::OneOf(&["text", "json", "markdown"]),
        "Format of the result; text if absent.",
    )],
);
