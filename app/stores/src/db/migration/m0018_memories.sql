CREATE TABLE memories (
    user_id TEXT NOT NULL,
    agent TEXT NOT NULL,
    document_json TEXT NOT NULL,
    revision BIGINT NOT NULL,
    edits BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (user_id, agent)
);
CREATE TABLE memory_news (
    thread_id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    agent TEXT NOT NULL,
    watermark TEXT,
    number BIGINT NOT NULL,
    tries BIGINT NOT NULL,
    due_at BIGINT,
    taken_until BIGINT,
    PRIMARY KEY (thread_id, user_id, agent)
);
CREATE INDEX memory_news_by_due ON memory_news (due_at);
