-- Each function is one transaction of a run. It returns FALSE and changes nothing if its case is
-- not usual, and raises DF001 if that is known only after its first change. The caller then repeats
-- the work statement by statement.
--
-- Plans are made once per session: all statements find their rows by key. Without statistics a
-- planner may prefer to scan a table that was empty a moment ago, so scans are disabled.

CREATE FUNCTION deerflow_create_thread(
    in_thread TEXT, in_assistant TEXT, in_user TEXT, in_metadata TEXT, in_pinned BOOLEAN, in_at BIGINT, in_ttl BIGINT,
    in_run_assistant TEXT, in_keep_latest BOOLEAN, in_paths TEXT[], in_values TEXT[]
) RETURNS BOOLEAN LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
BEGIN
    INSERT INTO threads_meta (thread_id, assistant_id, user_id, status, metadata_json, pinned, temporary, created_at, updated_at,
        state_updated_at, ttl_micros, run_assistant_id, keep_latest)
    SELECT in_thread, in_assistant, in_user, 'idle', in_metadata, in_pinned, FALSE, in_at, in_at, in_at, in_ttl, in_run_assistant,
        in_keep_latest
    WHERE NOT EXISTS (SELECT 1 FROM deleted_threads WHERE thread_id = in_thread AND user_id IS DISTINCT FROM in_user)
    ON CONFLICT (thread_id) DO NOTHING;
    IF NOT FOUND THEN
        RETURN FALSE;
    END IF;
    IF cardinality(in_paths) > 0 THEN
        INSERT INTO thread_facts (thread_id, path, value, user_id)
        SELECT in_thread, fact.path, fact.value, in_user FROM unnest(in_paths, in_values) AS fact (path, value);
    END IF;
    RETURN TRUE;
END $$;

CREATE FUNCTION deerflow_admit_run(
    in_thread TEXT, in_run TEXT, in_assistant TEXT, in_user TEXT, in_run_assistant TEXT,
    in_creates BOOLEAN, in_temporary BOOLEAN, in_ttl BIGINT, in_keep_latest BOOLEAN, in_content TEXT, in_max_active BIGINT,
    in_model TEXT, in_strategy TEXT, in_metadata TEXT, in_kwargs TEXT, in_recipe TEXT, in_webhook TEXT, in_owner TEXT,
    in_created_at BIGINT, in_at BIGINT,
    OUT is_admitted BOOLEAN, OUT head_checkpoint TEXT, OUT log_tail BIGINT
) LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
DECLARE
    thread_owner TEXT;
    thread_exists BOOLEAN;
BEGIN
    is_admitted := FALSE;
    -- Admission, claim and end of a run lock its thread first. While it is locked, no other
    -- transaction changes which of its runs is active.
    SELECT user_id INTO thread_owner FROM threads_meta WHERE thread_id = in_thread FOR UPDATE;
    thread_exists := FOUND;
    -- Counts at most as many runs as are permitted.
    IF in_max_active IS NOT NULL AND (SELECT COUNT(*) FROM (SELECT 1 FROM runs WHERE user_id = in_user
        AND status IN ('pending', 'starting', 'running') AND status <> 'pending' LIMIT in_max_active) AS active) >= in_max_active
    THEN
        RETURN;
    END IF;
    IF thread_exists THEN
        IF thread_owner IS DISTINCT FROM in_user OR EXISTS (SELECT 1 FROM runs WHERE thread_id = in_thread
            AND status IN ('pending', 'starting', 'running'))
        THEN
            RETURN;
        END IF;
        UPDATE threads_meta SET status = 'busy', updated_at = in_at,
            run_assistant_id = CASE WHEN assistant_id IS NULL THEN in_run_assistant ELSE run_assistant_id END,
            assistant_id = COALESCE(assistant_id, in_assistant)
        WHERE thread_id = in_thread;
    ELSIF NOT in_creates THEN
        RETURN;
    ELSE
        INSERT INTO threads_meta (thread_id, assistant_id, user_id, run_assistant_id, status, metadata_json, pinned, temporary,
            created_at, updated_at, state_updated_at, ttl_micros, keep_latest)
        SELECT in_thread, in_assistant, in_user, in_run_assistant, 'busy', '{}', FALSE, in_temporary, in_at, in_at, in_at, in_ttl,
            in_keep_latest
        WHERE NOT EXISTS (SELECT 1 FROM deleted_threads WHERE thread_id = in_thread AND user_id IS DISTINCT FROM in_user)
        ON CONFLICT (thread_id) DO NOTHING;
        IF NOT FOUND THEN
            RETURN;
        END IF;
    END IF;
    IF in_content IS NOT NULL THEN
        INSERT INTO flow_pins (thread_id, content_hash) VALUES (in_thread, in_content) ON CONFLICT DO NOTHING;
    END IF;
    INSERT INTO runs (run_id, thread_id, assistant_id, user_id, status, attempt, model_name, multitask_strategy, metadata_json,
        kwargs_json, last_batch, recipe_json, webhook, owner, losses, place, created_at, updated_at)
    VALUES (in_run, in_thread, in_assistant, in_user, 'starting', 1, in_model, in_strategy, in_metadata,
        in_kwargs, 0, in_recipe, in_webhook, in_owner, 0, 0, in_created_at, in_at)
    ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the run exists' USING ERRCODE = 'DF001';
    END IF;
    is_admitted := TRUE;
    SELECT checkpoint_id INTO head_checkpoint FROM checkpoints WHERE thread_id = in_thread ORDER BY checkpoint_id DESC LIMIT 1;
    SELECT COALESCE(MAX(place), 0) INTO log_tail FROM checkpoint_messages WHERE thread_id = in_thread;
END $$;

CREATE FUNCTION deerflow_commit_run(
    in_run TEXT, in_thread TEXT, in_attempt BIGINT, in_batch BIGINT, in_at BIGINT, in_permitted TEXT[], in_status TEXT,
    in_completion TEXT,
    in_ends BOOLEAN, in_error TEXT, in_error_name TEXT, in_stop_reason TEXT, in_retains_recipe BOOLEAN, in_thread_status TEXT,
    in_title TEXT, in_stored_values TEXT,
    in_forgets_calls BOOLEAN, in_call_keys TEXT[], in_call_results TEXT[],
    in_models TEXT[], in_input BIGINT[], in_output BIGINT[], in_total BIGINT[], in_cached BIGINT[],
    in_event_runs TEXT[], in_event_users TEXT[], in_event_types TEXT[], in_event_categories TEXT[], in_event_contents TEXT[],
    in_event_metadata TEXT[], in_event_times BIGINT[],
    in_places BIGINT[], in_messages TEXT[],
    in_checkpoints TEXT[], in_parents TEXT[], in_checkpoint_runs TEXT[], in_sources TEXT[], in_steps BIGINT[], in_layouts TEXT[],
    in_channels TEXT[], in_next TEXT[], in_machines TEXT[], in_checkpoint_metadata TEXT[], in_checkpoint_times BIGINT[],
    in_first_place BIGINT, in_last_place BIGINT
) RETURNS BOOLEAN LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
DECLARE
    is_temporary BOOLEAN;
    last BIGINT;
BEGIN
    IF in_ends THEN
        -- The thread's row is locked before the run's, as in admission. Later statements see the
        -- runs that others admitted until then.
        SELECT temporary INTO is_temporary FROM threads_meta WHERE thread_id = in_thread FOR UPDATE;
        IF is_temporary THEN
            RETURN FALSE;
        END IF;
        UPDATE runs SET updated_at = in_at, last_batch = CASE WHEN in_batch > 0 THEN in_batch ELSE last_batch END,
            status = in_status, completion_json = in_completion, error = in_error, error_name = in_error_name,
            stop_reason = in_stop_reason, recipe_json = CASE WHEN in_retains_recipe THEN recipe_json END, owner = NULL
        WHERE run_id = in_run AND thread_id = in_thread AND attempt = in_attempt AND status = ANY (in_permitted)
            AND (in_batch = 0 OR last_batch < in_batch);
        IF NOT FOUND THEN
            RETURN FALSE;
        END IF;
        UPDATE threads_meta SET updated_at = in_at, state_updated_at = in_at, display_name = COALESCE(in_title, display_name),
            status = CASE WHEN EXISTS (SELECT 1 FROM runs WHERE thread_id = in_thread AND run_id <> in_run
                AND status IN ('pending', 'starting', 'running')) THEN 'busy' ELSE in_thread_status END
        WHERE thread_id = in_thread;
        IF cardinality(in_models) > 0 THEN
            INSERT INTO model_usage (usage_id, run_id, user_id, created_at, model, input_tokens, output_tokens, total_tokens,
                cache_read_tokens)
            SELECT r.run_id || '/' || u.model, r.run_id, r.user_id, r.created_at, u.model, u.input, u.output, u.total, u.cached
            FROM runs AS r, unnest(in_models, in_input, in_output, in_total, in_cached) AS u (model, input, output, total, cached)
            WHERE r.run_id = in_run
            ON CONFLICT (usage_id) DO NOTHING;
        END IF;
        IF in_stored_values IS NOT NULL THEN
            UPDATE request_keys SET values_json = in_stored_values WHERE run_id = in_run;
        END IF;
    ELSE
        UPDATE runs SET updated_at = in_at, last_batch = CASE WHEN in_batch > 0 THEN in_batch ELSE last_batch END,
            status = COALESCE(in_status, status), completion_json = COALESCE(in_completion, completion_json),
            started_at = CASE WHEN in_status = 'running'
                THEN COALESCE(started_at, (EXTRACT(EPOCH FROM clock_timestamp()) * 1000000)::BIGINT) ELSE started_at END
        WHERE run_id = in_run AND thread_id = in_thread AND attempt = in_attempt AND status = ANY (in_permitted)
            AND (in_batch = 0 OR last_batch < in_batch);
        IF NOT FOUND THEN
            RETURN FALSE;
        END IF;
    END IF;
    IF in_forgets_calls THEN
        DELETE FROM tool_calls WHERE run_id = in_run;
    ELSIF cardinality(in_call_keys) > 0 THEN
        INSERT INTO tool_calls (run_id, call_key, result_json)
        SELECT in_run, entry.key, entry.result FROM unnest(in_call_keys, in_call_results) AS entry (key, result)
        ON CONFLICT (run_id, call_key) DO UPDATE SET result_json = excluded.result_json;
    END IF;
    IF cardinality(in_event_types) > 0 THEN
        -- The row stays locked until the commit, so that numbers rise in commit order.
        INSERT INTO run_event_counters AS counter (thread_id, last_seq) VALUES (in_thread, cardinality(in_event_types))
        ON CONFLICT (thread_id) DO UPDATE SET last_seq = counter.last_seq + excluded.last_seq
        RETURNING counter.last_seq INTO last;
        INSERT INTO run_events (thread_id, seq, run_id, user_id, event_type, category, content, event_metadata, created_at)
        SELECT in_thread, last - cardinality(in_event_types) + e.number, e.run, e.owner, e.type, e.category, e.content, e.metadata, e.at
        FROM unnest(in_event_runs, in_event_users, in_event_types, in_event_categories, in_event_contents, in_event_metadata,
            in_event_times) WITH ORDINALITY AS e (run, owner, type, category, content, metadata, at, number);
    END IF;
    IF cardinality(in_messages) > 0 THEN
        INSERT INTO checkpoint_messages (thread_id, place, message_json)
        SELECT in_thread, m.place, m.message FROM unnest(in_places, in_messages) AS m (place, message);
    END IF;
    IF cardinality(in_checkpoints) > 0 THEN
        INSERT INTO checkpoints (thread_id, checkpoint_id, parent_id, run_id, source, step, layout_json, channels_json, next_json,
            machine_json, metadata_json, created_at)
        SELECT in_thread, c.id, c.parent, c.run, c.source, c.step, c.layout, c.channels, c.next, c.machine, c.metadata, c.at
        FROM unnest(in_checkpoints, in_parents, in_checkpoint_runs, in_sources, in_steps, in_layouts, in_channels, in_next,
            in_machines, in_checkpoint_metadata, in_checkpoint_times)
            AS c (id, parent, run, source, step, layout, channels, next, machine, metadata, at);
    END IF;
    IF in_last_place IS NOT NULL AND (SELECT COUNT(*) FROM checkpoint_messages WHERE thread_id = in_thread
        AND place BETWEEN in_first_place AND in_last_place) <> in_last_place - in_first_place + 1
    THEN
        RAISE EXCEPTION 'a message is missing' USING ERRCODE = 'DF001';
    END IF;
    RETURN TRUE;
END $$;
