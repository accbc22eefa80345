//! Former public paths still resolve, so that crates written against them build unchanged.
#![cfg(all(
    feature = "web",
    feature = "mcp",
    feature = "acp",
    feature = "containers",
    feature = "config-file",
    feature = "testkit"
))]
#![expect(unused_imports, reason = "the test is that each path resolves")]

use deerflow_harness::acp::AcpSurroundings as _;
use deerflow_harness::agents::agent_loop::AgentParts as _;
use deerflow_harness::agents::agent_loop::DueCall as _;
use deerflow_harness::agents::agent_loop::NewQuestion as _;
use deerflow_harness::agents::agent_loop::Patience as _;
use deerflow_harness::agents::agent_loop::Place as _;
use deerflow_harness::agents::aids as _;
use deerflow_harness::agents::aids::Said as _;
use deerflow_harness::agents::custom::MemoryCustomAgents as _;
use deerflow_harness::agents::kept as _;
use deerflow_harness::agents::lead::USUAL_FILE_TOOLS as _;
use deerflow_harness::artifacts::refused as _;
use deerflow_harness::client::AskedCall as _;
use deerflow_harness::client::LARGEST_ARTIFACT as _;
use deerflow_harness::config_file::Place as _;
use deerflow_harness::documents::Glimpse as _;
use deerflow_harness::documents::Opening as _;
use deerflow_harness::documents::Unreadable as _;
use deerflow_harness::documents::glimpse as _;
use deerflow_harness::mcp::McpPlace as _;
use deerflow_harness::mcp::McpSurroundings as _;
use deerflow_harness::memory as _;
use deerflow_harness::memory::MOST_FACT_CHARS as _;
use deerflow_harness::memory::Memories as _;
use deerflow_harness::memory::MemoryStore as _;
use deerflow_harness::memory::Noted as _;
use deerflow_harness::memory::Stored as _;
use deerflow_harness::memory::VolatileMemoryStore as _;
use deerflow_harness::messages::own_words as _;
use deerflow_harness::middlewares::ModelEnd as _;
use deerflow_harness::middlewares::ToolEnd as _;
use deerflow_harness::middlewares::guardrail::BrokenPolicy as _;
use deerflow_harness::middlewares::guardrail::policy_fault as _;
use deerflow_harness::models::ASIDE_USAGE as _;
use deerflow_harness::models::AsideAnswer as _;
use deerflow_harness::models::AsideModels as _;
use deerflow_harness::models::Asker as _;
use deerflow_harness::models::Question as _;
use deerflow_harness::models::Tab as _;
use deerflow_harness::models::Till as _;
use deerflow_harness::node_bell_suite as _;
use deerflow_harness::programs as _;
use deerflow_harness::runtime::agent::SubagentNews as _;
use deerflow_harness::runtime::checkpoint::CheckpointPlace as _;
use deerflow_harness::runtime::checkpoint::KeptHistory as _;
use deerflow_harness::runtime::checkpoint::OutsideChange as _;
use deerflow_harness::runtime::checkpoint::OutsideWrite as _;
use deerflow_harness::runtime::memory as _;
use deerflow_harness::runtime::memory::InvalidOption as _;
use deerflow_harness::runtime::memory::MemoryNodeBell as _;
use deerflow_harness::runtime::memory::MemoryOptions as _;
use deerflow_harness::runtime::memory::MemoryStores as _;
use deerflow_harness::runtime::memory::MemoryStreamBridge as _;
use deerflow_harness::runtime::memory::runtime_in_memory as _;
use deerflow_harness::runtime::runs::ExecutionPlan as _;
use deerflow_harness::runtime::runs::LeaseView as _;
use deerflow_harness::runtime::runs::NodeBell as _;
use deerflow_harness::runtime::runs::Ring as _;
use deerflow_harness::runtime::runs::RunCommand as _;
use deerflow_harness::runtime::runs::RunSpec as _;
use deerflow_harness::runtime::runs::RuntimeParts as _;
use deerflow_harness::runtime::runs::Verdict as _;
use deerflow_harness::runtime::runs::Visit as _;
use deerflow_harness::runtime::runs::store::AsideCost as _;
use deerflow_harness::runtime::runs::store::AsideLedger as _;
use deerflow_harness::runtime::runs::store::Hold as _;
use deerflow_harness::runtime::runs::store::Known as _;
use deerflow_harness::runtime::runs::store::Made as _;
use deerflow_harness::runtime::runs::store::Recipe as _;
use deerflow_harness::runtime::runs::store::RunStanding as _;
use deerflow_harness::runtime::runs::store::WebhookLetter as _;
use deerflow_harness::runtime::runs::verdict as _;
use deerflow_harness::runtime::serialization as _;
use deerflow_harness::runtime::serialization::CheckpointView as _;
use deerflow_harness::runtime::serialization::Frame as _;
use deerflow_harness::runtime::serialization::ModeEncoder as _;
use deerflow_harness::runtime::serialization::RunFacts as _;
use deerflow_harness::runtime::serialization::Wanted as _;
use deerflow_harness::runtime::serialization::error_frame as _;
use deerflow_harness::runtime::serialization::metadata_frame as _;
use deerflow_harness::runtime::serialization::to_bytes as _;
use deerflow_harness::runtime::serialization::values_json as _;
use deerflow_harness::runtime::threads::open_questions as _;
use deerflow_harness::sandbox::Fault as _;
use deerflow_harness::sandbox::Found as _;
use deerflow_harness::sandbox::LeftThread as _;
use deerflow_harness::sandbox::Shelf as _;
use deerflow_harness::sandbox::ShelvedFolder as _;
use deerflow_harness::sandbox::Shelves as _;
use deerflow_harness::sandbox::command::LONGEST_COMMAND as _;
use deerflow_harness::sandbox::command::container::CallFault as _;
use deerflow_harness::sandbox::command::container::ContainerMaker as _;
use deerflow_harness::sandbox::egress::Way as _;
use deerflow_harness::sandbox::egress::WayOut as _;
use deerflow_harness::sandbox::fault::Fault as _;
use deerflow_harness::sandbox::fault::FileError as _;
use deerflow_harness::sandbox::removal::LeftThread as _;
use deerflow_harness::sandbox::render::found as _;
use deerflow_harness::sandbox::search::Found as _;
use deerflow_harness::sandbox::shelf::Shelf as _;
use deerflow_harness::sandbox::shelf::ShelvedFolder as _;
use deerflow_harness::sandbox::shelf::Shelves as _;
use deerflow_harness::skills::SkillPlaces as _;
use deerflow_harness::skills::archive::LARGEST_ARCHIVE as _;
use deerflow_harness::skills::archive::LARGEST_SHOWN as _;
use deerflow_harness::skills::archive::LONGEST_CONTENTS as _;
use deerflow_harness::skills::archive::MOST_BYTES as _;
use deerflow_harness::skills::archive::MOST_ENTRIES as _;
use deerflow_harness::subagents::Crew as _;
use deerflow_harness::subagents::CrewSpec as _;
use deerflow_harness::subagents::Member as _;
use deerflow_harness::subagents::crew_for as _;
use deerflow_harness::tools::approval::AnswerError as _;
use deerflow_harness::tools::web::BadTool as _;
use deerflow_harness::tools::web::Patience as _;
use deerflow_harness::tools::web::WebKit as _;
use deerflow_harness::uploads::ComingUpload as _;
use deerflow_harness::uploads::place_named as _;

#[test]
#[expect(deprecated, reason = "the test is that each former name resolves")]
fn former_method_names_resolve() {
    use deerflow_harness::agents::AgentBuilder;
    use deerflow_harness::agents::agent_loop::LoopMachine;
    use deerflow_harness::client::Client;
    use deerflow_harness::middlewares::summarization::View;
    use deerflow_harness::models::{ModelCatalog, Tab, TokenFamily};
    use deerflow_harness::net::{Egress, HostRules};
    use deerflow_harness::runtime::agent::ModelCallRecord;
    use deerflow_harness::runtime::runs::store::RunCommit;
    use deerflow_harness::runtime::runs::{RunRecord, RunsFacade};
    use deerflow_harness::runtime::stream_bridge::FanOut;
    use deerflow_harness::sandbox::command::container::ContainerBackend;
    use deerflow_harness::sandbox::{BlockingFiles, FileHome, ThreadFiles, Transcript};
    use deerflow_harness::user_memory::MemoryWorker;

    let _ = RunsFacade::hand_over_all;
    let _ = RunsFacade::set_limits;
    let _ = RunsFacade::limits;
    let _ = RunsFacade::create_for_waiting;
    let _ = RunsFacade::follow_thread;
    let _ = RunsFacade::unfinished_runs;
    let _ = RunsFacade::load;
    let _ = RunsFacade::recover;
    let _ = RunsFacade::join;
    let _ = RunsFacade::release_all;
    let _ = RunsFacade::lease;
    let _ = RunsFacade::is_displaced;
    let _ = RunsFacade::live_runs;
    let _ = RunsFacade::parts;
    let _ = RunRecord::was_given_back;
    let _ = RunCommit::giving_back;
    let _ = ModelCatalog::with_usual_places;
    let _ = ModelCatalog::with_longest_answer;
    let _ = AgentBuilder::patience;
    let _ = MemoryWorker::look;
    let _ = FileHome::with_shelves;
    let _ = BlockingFiles::with_shelves;
    let _ = BlockingFiles::shelf;
    let _ = ThreadFiles::shelf;
    let _ = Tab::book;
    let _ = Tab::asker;
    let _ = Egress::judge;
    let _ = HostRules::judge;
    let _ = LoopMachine::due;
    let _ = LoopMachine::place;
    let _ = LoopMachine::has_questions;
    let _ = FanOut::tell;
    let _ = TokenFamily::letters;
    let _ = TokenFamily::wide_letters;
    let _ = View::told;
    let _ = ModelCallRecord::is_aside;
    let _ = ContainerBackend::look;
    let _ = Transcript::keeping;
    let _ = Client::open_questions;
}

#[test]
fn paths_of_the_flat_kernel_resolve() {
    use deerflow_harness::runtime::runs::store::{
        AdmitError, Admitted, AuxiliaryUsage, CallEntry, CallProgress, Claimed, CommitError,
        CreatedResource, EventQuery, KeyState, Lease, NewRun, NewRunEvent, NodeRecord, NodeStore,
        Order, OwnedRun, RequestKey, RequestStore, RunCommit, RunCommitStore, RunCreateStore,
        RunDeleteStore, RunEnd, RunEvent, RunEventStore, RunListQuery, RunQueryStore, StoreError,
        StoreLockStatus, StoredRunRequest, ToolLedger, UnfinishedRun, UsageLedger, WebhookCall,
        WebhookDelivery, WebhookOutbox, WebhookOutboxEntry, category,
    };
    use deerflow_harness::runtime::runs::{
        ATTEMPTS_EXHAUSTED, AdmissionDecision, CancelAction, CheckpointRef, DisconnectMode,
        Durability, Expiry, GotoTarget, IfNotExists, InvalidTransition, LOST_ERROR, LeaseStatus,
        LifecycleKind, MultitaskStrategy, NODE_LOST, NodeNotifier, NodeSelector, NullObserver,
        ORPHAN_RECOVERED, ROLLED_BACK, Recovery, RunCompletionData, RunConfig, RunError, RunHandle,
        RunInput, RunLifecycleEvent, RunLimits, RunObserver, RunOutcome, RunPlan, RunPresentation,
        RunRecord, RunRegistry, RunRequest, RunScope, RunStatus, RunStream, RunValues, RunsFacade,
        Runtime, RuntimePorts, StreamMode, StreamModes, ThreadCommand, ThreadCursor, ThreadEventId,
        ThreadItem, ThreadStatus, ThreadTtl, WaitOutcome, WakeSignal, decide_admission, plan,
    };
}
