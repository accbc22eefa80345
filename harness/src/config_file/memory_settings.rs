//! Settings of DeerFlow's memory that are accepted without effect.

/// Keys of `memory.backend_config` without effect, with DeerFlow's defaults as JSON.
pub(super) static WITHOUT_EFFECT: &[(&str, &str)] = &[
    ("retrieval_adapter", r#""fts5""#),
    ("strict_user_scope", "false"),
    ("manifest_filename", r#""memory.json""#),
    ("file_lock_timeout_seconds", "10"),
    ("queue_max_depth", "1000"),
    ("fact_eviction_policy", r#""confidence""#),
    ("fact_eviction_shadow_enabled", "false"),
    ("eviction_confidence_weight", "0.65"),
    ("eviction_confirmation_weight", "0.25"),
    ("eviction_access_weight", "0.1"),
    ("eviction_confirmation_half_life_days", "90"),
    ("eviction_access_half_life_days", "30"),
    ("eviction_correction_reserved_fraction", "0.1"),
    ("eviction_correction_reserved_max", "10"),
    ("eviction_audit_max_entries", "200"),
    ("token_counting", r#""tiktoken""#),
    ("guaranteed_categories", r#"["correction"]"#),
    ("guaranteed_token_budget", "500"),
    ("staleness_review_enabled", "true"),
    ("staleness_age_days", "90"),
    ("staleness_min_candidates", "3"),
    ("staleness_max_removals_per_cycle", "10"),
    ("staleness_protected_categories", r#"["correction"]"#),
    ("staleness_max_lifetime_multiplier", "20"),
    ("staleness_max_extension_days", "3650"),
    ("consolidation_enabled", "false"),
    ("consolidation_min_facts", "8"),
    ("consolidation_max_groups_per_cycle", "3"),
    ("consolidation_max_sources", "8"),
    ("patterns_dir", r#""""#),
    ("prompts_dir", r#""""#),
];

/// Consequence of a value other than the default.
pub(super) const MESSAGE: &str = "has no effect: facts are kept by confidence up to `max_facts`, and none are reviewed or merged";
