//! redis_losses
