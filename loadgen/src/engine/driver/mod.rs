//! The way of a request, from top to bottom: a lane is free and takes it on, it gets a connection,
//! is sent, answered, judged and recorded, and its lane is free again. All protocols go this way;
//! HTTP/2 only has several requests on their way on one connection.

mod answering;
mod beginning;
mod connections;
mod driving;
mod ending;
mod http2;
mod lanes;
mod logging;
mod opening;
mod records;
mod sending;
mod unending;
mod using;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::exchange::{Memory, READ_BYTES, Scratch};
use super::plan::Plan;
use super::poll::Poll;
use super::pool::{ConnId, Pool};
use super::schedule::{LaneScheduler, ThreadShare};
use super::self_watch::ThreadClock;
use super::users::Login;
use connections::ConnectionState;
use lanes::LaneState;
use records::Records;

/// How often a slow reader reads.
const SLOW_READS_PER_S: u32 = 10;

/// What is to be done at a given time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    /// A lane begins, or its pause is over.
    Free(usize),
    /// Something is due on a lane that has a timetable of its own.
    Due(usize),
    Connect(ConnId),
    /// A slow reader reads on.
    Read(ConnId),
}

/// All that a thread does in a slot, driven by events and by the clock.
pub struct SlotDriver<'a> {
    plan: &'a Plan,
    poll: &'a Poll,
    scratch: &'a mut Scratch,
    /// Of each request.
    memory: Vec<Memory>,
    slow_read_bytes: usize,
    pub clock: ThreadClock,
    /// When the last wait ended.
    pub woke_ns: u64,
    timers: BinaryHeap<Reverse<(u64, Timer)>>,
    /// No request times out before.
    check_timeouts_ns: u64,
    pub lanes: LaneState,
    pub conns: ConnectionState<'a>,
    pub records: Records,
    /// Users log in: before the slot begins.
    login: Option<Login>,
}

impl<'a> SlotDriver<'a> {
    pub fn new(
        plan: &'a Plan,
        pool: &'a mut Pool,
        poll: &'a Poll,
        scratch: &'a mut Scratch,
        share: ThreadShare,
    ) -> Self {
        let conns = ConnectionState::new(plan, pool, &share);
        let lanes = share.connections * plan.streams;
        SlotDriver {
            plan,
            poll,
            scratch,
            memory: plan.requests.iter().map(|_| Memory::default()).collect(),
            slow_read_bytes: slow_read_bytes(plan),
            clock: ThreadClock::default(),
            woke_ns: 0,
            timers: BinaryHeap::new(),
            check_timeouts_ns: 0,
            lanes: LaneState::new(LaneScheduler::new(share, lanes), lanes),
            conns,
            records: Records::new(),
            login: None,
        }
    }
}

/// What a slow reader takes at a time.
fn slow_read_bytes(plan: &Plan) -> usize {
    let rate = plan.order.load.slow_readers.map_or(0, |slow| slow.bytes_per_s);
    (rate.div_ceil(SLOW_READS_PER_S) as usize).min(READ_BYTES)
}
