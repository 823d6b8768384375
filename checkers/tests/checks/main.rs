//! Each check on small histories made by hand, good beside bad.

mod belief_safety;
mod conduct;
mod election_barrier;
mod failover;
mod judge;
mod lease_linearizable;
mod lock_delay;
mod outside;
mod register_linearizable;
mod storage_safety;
mod tale;
mod token_monotonicity;
mod well_formed;
mod zombie_write;
