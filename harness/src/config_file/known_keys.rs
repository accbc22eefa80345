//! Table of all configuration keys, of this program and of older `config.yaml` files, by section.
//!
//! Section paths are dotted; `[]` stands for each element of a list and `*` for each name in a map.
//! A section that is not listed is opaque: it accepts any content.

/// Keys of one section.
pub(super) struct KeySection {
    /// Path of the section.
    pub(super) at: &'static str,
    keys: &'static str,
    /// `true` if other keys are passed on, so that only likely typing errors are reported.
    pub(super) open: bool,
}

impl KeySection {
    /// Returns the known keys, in the order of the reference.
    pub(super) fn keys(&self) -> impl Iterator<Item = &'static str> {
        self.keys.split_ascii_whitespace()
    }
}

/// Returns the section with the path `at`; `None` if it accepts any content.
pub(super) fn section(at: &str) -> Option<&'static KeySection> {
    SECTIONS.iter().find(|section| section.at == at)
}

const fn closed(at: &'static str, keys: &'static str) -> KeySection {
    KeySection {
        at,
        keys,
        open: false,
    }
}

const fn open(at: &'static str, keys: &'static str) -> KeySection {
    KeySection {
        at,
        keys,
        open: true,
    }
}

/// Section of one channel: the keys that all channels have, and those of its platform.
macro_rules! channel {
    ($platform:literal, $keys:literal) => {
        closed(
            concat!("channels.", $platform),
            concat!(
                "enabled busy mention_only allowed_users allowed_guilds allowed_channels \
                 max_exchanges_per_minute session ",
                $keys
            ),
        )
    };
}

/// Sections with the session layers of one channel.
macro_rules! session {
    ($platform:literal) => {
        closed(
            concat!("channels.", $platform, ".session"),
            "assistant_id config context users",
        )
    };
}
macro_rules! session_users {
    ($platform:literal) => {
        closed(
            concat!("channels.", $platform, ".session.users.*"),
            "assistant_id config context",
        )
    };
}

static SECTIONS: &[KeySection] = &[
    closed(
        "",
        "log_level logging token_usage token_budget plugins max_recursion_limit models sandbox tools \
         tool_groups skills skill_scan skill_evolution extensions tool_output tool_search title summarization \
         memory agents_api acp_agents subagents flows guardrails authorization input_polish suggestions \
         circuit_breaker llm_call channel_connections loop_detection tool_progress read_before_write \
         safety_finish_reason auth database run_events agent_storage scheduler mcp_tasks checkpointer \
         store stream_bridge run_ownership dedupe_storage config_version uploads channels runs limits quotas fair_permits webhooks retention testing",
    ),
    closed("logging", "enhance"),
    closed("logging.enhance", "enabled format"),
    closed("token_usage", "enabled"),
    closed(
        "token_budget",
        "enabled max_tokens max_input_tokens max_output_tokens warn_threshold hard_stop_threshold",
    ),
    closed("plugins[]", "enabled name package use config required"),
    open(
        "models[]",
        "name display_name description use model use_responses_api output_version supports_thinking \
         supports_reasoning_effort when_thinking_enabled when_thinking_disabled supports_vision \
         context_window stream_chunk_timeout thinking api_key base_url api_base openai_api_base temperature \
         max_tokens timeout request_timeout default_request_timeout max_retries extra_body default_headers \
         model_kwargs reasoning_effort pricing gemini_api_key anthropic_api_key num_predict reasoning top_p \
         api_keys fallback_models credentials_path enable_prompt_caching prompt_cache_size betas billing_header \
         max_concurrent_calls max_answer_bytes proxy openai_proxy anthropic_proxy default_query account_id thinking_budget thinking_level safety_settings \
         read_timeout connect_timeout write_timeout pool_timeout cumulative_stream_usage",
    ),
    open(
        "sandbox",
        "use allow_host_bash network limits max_commands image port replicas overflow_policy acquire_timeout burst_limit container_prefix \
         idle_timeout health_check_skip_seconds ownership mounts thread_data_mounts environment \
         bash_output_max_chars read_file_output_max_chars ls_output_max_chars bash_command_timeout \
         provisioner_url provisioner_api_key",
    ),
    closed(
        "sandbox.ownership",
        "type redis_url renewal_interval_seconds ttl_multiplier key_prefix",
    ),
    closed(
        "sandbox.limits",
        "processes memory_mb file_mb open_files cpu_seconds scratch_mb output_mb",
    ),
    closed("sandbox.mounts[]", "host_path container_path read_only"),
    open("tools[]", "name group use"),
    open("tool_groups[]", "name"),
    closed("skills", "use path container_path deferred_discovery"),
    closed("skill_scan", "enabled"),
    closed(
        "skill_evolution",
        "enabled moderation_model_name security_fail_closed",
    ),
    open(
        "extensions",
        "middlewares mcp_servers mcpServers mcpInterceptors skills",
    ),
    open(
        "extensions.mcp_servers.*",
        "enabled type command args env url headers oauth description routing tools tool_name_prefix \
         tool_call_timeout session_init_timeout task_toolsets",
    ),
    open(
        "extensions.mcp_servers.*.oauth",
        "enabled token_url grant_type client_id client_secret refresh_token scope audience token_field \
         token_type_field expires_in_field default_token_type refresh_skew_seconds extra_token_params",
    ),
    closed("extensions.mcp_servers.*.routing", "mode priority keywords"),
    open("extensions.mcp_servers.*.tools.*", "routing"),
    closed(
        "extensions.mcp_servers.*.tools.*.routing",
        "mode priority keywords",
    ),
    closed(
        "extensions.mcp_servers.*.task_toolsets[]",
        "name submit_tool status_tool cancel_tool",
    ),
    closed("extensions.skills.*", "enabled"),
    closed(
        "tool_output",
        "enabled externalize_min_chars preview_head_chars preview_tail_chars fallback_max_chars \
         fallback_head_chars fallback_tail_chars storage_subdir exempt_tools tool_overrides",
    ),
    closed("tool_search", "enabled auto_promote_top_k"),
    closed(
        "title",
        "enabled max_words max_chars model_name prompt_template",
    ),
    closed(
        "summarization",
        "enabled model_name trigger keep trim_tokens_to_summarize summary_prompt skill_file_read_tool_names \
         preserve_recent_skill_count preserve_recent_skill_tokens preserve_recent_skill_tokens_per_skill",
    ),
    closed("summarization.trigger", "type value"),
    closed("summarization.trigger[]", "type value"),
    closed("summarization.keep", "type value"),
    closed(
        "memory",
        "enabled mode injection_enabled shutdown_flush_timeout_seconds manager_class backend_config \
         storage_path debounce_seconds model_name max_facts fact_confidence_threshold max_injection_tokens \
         token_counting storage_class",
    ),
    closed(
        "memory.backend_config",
        "debounce_seconds model_name max_facts fact_confidence_threshold max_injection_tokens \
         storage_path storage_class model retrieval_adapter strict_user_scope manifest_filename \
         file_lock_timeout_seconds queue_max_depth fact_eviction_policy fact_eviction_shadow_enabled \
         eviction_confidence_weight eviction_confirmation_weight eviction_access_weight \
         eviction_confirmation_half_life_days eviction_access_half_life_days \
         eviction_correction_reserved_fraction eviction_correction_reserved_max eviction_audit_max_entries \
         token_counting guaranteed_categories guaranteed_token_budget staleness_review_enabled \
         staleness_age_days staleness_min_candidates staleness_max_removals_per_cycle \
         staleness_protected_categories staleness_max_lifetime_multiplier staleness_max_extension_days \
         consolidation_enabled consolidation_min_facts consolidation_max_groups_per_cycle \
         consolidation_max_sources patterns_dir prompts_dir",
    ),
    closed("agents_api", "enabled"),
    closed(
        "acp_agents.*",
        "command args env description model auto_approve_permissions timeout_seconds",
    ),
    closed(
        "subagents",
        "enabled max_running timeout_seconds max_turns max_total_per_run token_budget agents custom_agents",
    ),
    closed(
        "subagents.token_budget",
        "enabled max_tokens max_input_tokens max_output_tokens warn_threshold hard_stop_threshold",
    ),
    closed(
        "subagents.agents.*",
        "timeout_seconds max_turns model skills token_budget",
    ),
    closed(
        "subagents.agents.*.token_budget",
        "enabled max_tokens max_input_tokens max_output_tokens warn_threshold hard_stop_threshold",
    ),
    closed(
        "subagents.custom_agents.*",
        "description system_prompt tools disallowed_tools skills model max_turns timeout_seconds",
    ),
    closed(
        "flows",
        "path max_state_bytes max_concurrency max_subflow_depth max_flows_per_user max_versions \
         allowed_origins loader_hosts adapters",
    ),
    closed("flows.adapters", "pi-mono"),
    closed(
        "flows.adapters.pi-mono",
        "base_url api_key model temperature",
    ),
    closed("guardrails", "enabled fail_closed passport provider"),
    closed("guardrails.provider", "use config"),
    closed("authorization", "enabled fail_closed default_role provider"),
    closed("authorization.provider", "use config"),
    closed("input_polish", "enabled max_chars model_name"),
    closed("suggestions", "enabled max_suggestions"),
    closed("circuit_breaker", "failure_threshold recovery_timeout_sec"),
    closed(
        "llm_call",
        "max_concurrent_calls max_answer_bytes retry_max_attempts retry_base_delay_ms retry_cap_delay_ms \
         burst_retry_base_delay_ms",
    ),
    closed(
        "channel_connections",
        "enabled require_bound_identity slack telegram discord feishu dingtalk wechat wecom buzz",
    ),
    closed("channel_connections.slack", "enabled"),
    closed("channel_connections.telegram", "enabled bot_username"),
    closed("channel_connections.discord", "enabled"),
    closed("channel_connections.feishu", "enabled"),
    closed("channel_connections.dingtalk", "enabled"),
    closed("channel_connections.wechat", "enabled"),
    closed("channel_connections.wecom", "enabled"),
    closed("channel_connections.buzz", "enabled"),
    closed(
        "loop_detection",
        "enabled warn_threshold hard_limit window_size max_tracked_threads tool_freq_warn \
         tool_freq_hard_limit tool_freq_overrides",
    ),
    closed("loop_detection.tool_freq_overrides.*", "warn hard_limit"),
    closed(
        "tool_progress",
        "enabled stagnation_threshold warn_escalation_count inject_assessment jaccard_similarity_threshold \
         min_word_count_for_similarity exempt_tools max_tracked_threads",
    ),
    closed("read_before_write", "enabled"),
    closed("safety_finish_reason", "enabled detectors"),
    closed("safety_finish_reason.detectors[]", "use config"),
    closed("auth", "oidc local setup_minutes registrations_per_hour"),
    closed("auth.oidc", "enabled frontend_base_url providers"),
    closed(
        "auth.oidc.providers.*",
        "display_name issuer client_id client_secret redirect_uri scopes token_endpoint_auth_method \
         auto_create_users require_verified_email allowed_email_domains admin_emails pkce_enabled \
         nonce_enabled authorization_endpoint token_endpoint userinfo_endpoint jwks_uri \
         link_by_verified_email",
    ),
    closed("auth.local", "allow_registration"),
    closed(
        "database",
        "backend checkpoint_channel_mode checkpoint_delta checkpoint_graph_cache checkpoint_cache sqlite_dir \
         postgres_url echo_sql pool_size pool_recycle command_timeout postgres_schema disk_reserve_mb",
    ),
    closed("database.checkpoint_delta", "snapshot_frequency"),
    closed("database.checkpoint_graph_cache", "accessor_graph_max"),
    closed(
        "database.checkpoint_cache",
        "type max_entries redis_url ttl_seconds key_prefix",
    ),
    closed("run_events", "backend max_trace_content track_token_usage"),
    closed("agent_storage", "backend"),
    closed(
        "scheduler",
        "enabled multi_instance poll_interval_seconds lease_seconds max_concurrent_runs \
         min_once_delay_seconds",
    ),
    closed(
        "mcp_tasks",
        "enabled poll_interval_seconds lease_seconds max_concurrent_polls max_poll_backoff_seconds \
         input_required_poll_interval_seconds tracking_degraded_after_errors max_result_bytes \
         result_preview_max_chars",
    ),
    closed("checkpointer", "type connection_string postgres_schema ttl"),
    closed(
        "checkpointer.ttl",
        "strategy default_ttl sweep_interval_minutes",
    ),
    closed(
        "stream_bridge",
        "type redis_url queue_maxsize max_connections stream_ttl_seconds \
         recovered_stream_cleanup_delay_seconds",
    ),
    closed("webhooks", "allow_private secret"),
    closed("store", "index ttl"),
    closed("store.index", "embed dims fields"),
    closed("store.index.embed", "model base_url api_key timeout"),
    closed(
        "store.ttl",
        "default_ttl refresh_on_read sweep_interval_minutes",
    ),
    closed(
        "retention",
        "dead_letter_days run_event_days checkpoints_per_thread checkpoint_days audit_days sweep_interval_minutes",
    ),
    closed(
        "run_ownership",
        "lease_seconds grace_seconds heartbeat_enabled recovery max_attempts stall_seconds",
    ),
    closed("dedupe_storage", "backend"),
    closed(
        "uploads",
        "max_files max_file_size max_total_size auto_convert_documents pdf_converter",
    ),
    // Open, because a program can add platforms.
    open(
        "channels",
        "langgraph_url gateway_url inbound_queue_maxsize max_concurrency shutdown_grace_period_seconds \
         session slack telegram discord feishu dingtalk wechat wecom buzz github",
    ),
    closed("channels.session", "assistant_id config context users"),
    channel!("telegram", "bot_token api_base rich_messages"),
    channel!("slack", "bot_token app_token api_base dm_threads"),
    channel!("feishu", "app_id app_secret domain"),
    channel!("discord", "bot_token api_base gateway_url thread_mode"),
    channel!(
        "dingtalk",
        "client_id client_secret api_base oapi_base card_template_id"
    ),
    channel!("wecom", "bot_id bot_secret ws_url"),
    session!("telegram"),
    session!("slack"),
    session!("feishu"),
    session!("discord"),
    session!("dingtalk"),
    session!("wecom"),
    session_users!("telegram"),
    session_users!("slack"),
    session_users!("feishu"),
    session_users!("discord"),
    session_users!("dingtalk"),
    session_users!("wecom"),
    closed(
        "runs",
        "wall_clock_limit_seconds idle_limit_seconds shutdown_grace_seconds max_enqueued_per_thread max_messages_per_request max_messages_per_thread thread_states_mb max_log_events_per_thread max_log_mb_per_thread",
    ),
    closed(
        "limits",
        "max_metadata_bytes max_config_bytes max_message_bytes max_item_bytes request_memory_mb answer_memory_mb",
    ),
    closed(
        "quotas",
        "active_runs queued_runs threads assistants items stored_mb files_mb",
    ),
    closed("fair_permits", "weights"),
    closed("fair_permits.weights", "admin user"),
    closed("testing", "conformance_agent"),
];
