CREATE TABLE feedback (
    thread_id TEXT NOT NULL,
    run_id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    feedback_id TEXT NOT NULL,
    message_id TEXT,
    rating BIGINT NOT NULL,
    comment TEXT,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (thread_id, run_id, user_id)
);
