//! Deadlines of one session with an agent.

use std::time::Duration;

use agent_client_protocol::Error as ProtocolError;
use tokio::time::{Instant, timeout_at};

use super::error::{AcpError, Phase};

/// Timeout of each phase before the prompt. It is long because a launcher may first download the
/// agent.
const PREPARATION_TIMEOUT: Duration = Duration::from_secs(120);

/// Deadlines of one session: one for the whole session, one per preparation phase.
#[derive(Debug, Clone, Copy)]
pub(super) struct PhaseDeadlines {
    whole: Duration,
    end: Instant,
}

impl PhaseDeadlines {
    pub(super) fn starting_now(whole: Duration) -> Self {
        Self {
            whole,
            end: Instant::now() + whole,
        }
    }

    /// Returns the timeout of a phase that starts now, and its deadline. No phase exceeds the
    /// deadline of the session.
    fn of(&self, phase: Phase) -> (Duration, Instant) {
        let end = Instant::now() + PREPARATION_TIMEOUT;
        if phase == Phase::Prompt || end >= self.end {
            (self.whole, self.end)
        } else {
            (PREPARATION_TIMEOUT, end)
        }
    }

    pub(super) async fn within<T>(
        &self,
        phase: Phase,
        answer: impl Future<Output = Result<T, ProtocolError>>,
    ) -> Result<T, AcpError> {
        let (limit, end) = self.of(phase);
        let answered = timeout_at(end, answer)
            .await
            .map_err(|_late| AcpError::Timeout { phase, limit })?;
        answered.map_err(|error| AcpError::of(phase, &error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn phase_timeout_respects_session_deadline() {
        let timeout_outcome = async |limits: PhaseDeadlines, phase: Phase| {
            let never = std::future::pending::<Result<(), ProtocolError>>();
            (
                limits.within(phase, never).await.unwrap_err().to_string(),
                limits
                    .end
                    .saturating_duration_since(Instant::now())
                    .as_secs(),
            )
        };
        let limits = PhaseDeadlines::starting_now(Duration::from_secs(300));
        assert_eq!(
            timeout_outcome(limits, Phase::Initialize).await,
            (
                "it did not start and complete its handshake within 120 s and was ended".to_owned(),
                180
            )
        );
        assert_eq!(
            timeout_outcome(limits, Phase::NewSession).await,
            (
                "it did not open a session within 120 s and was ended".to_owned(),
                60
            )
        );
        assert_eq!(
            timeout_outcome(limits, Phase::SetModel).await,
            (
                "it did not take the configured model within 300 s and was ended".to_owned(),
                0
            )
        );
        let limits = PhaseDeadlines::starting_now(Duration::from_secs(1800));
        assert_eq!(
            timeout_outcome(limits, Phase::Prompt).await,
            (
                "it did not finish its task within 1800 s and was ended".to_owned(),
                0
            )
        );
    }
}
