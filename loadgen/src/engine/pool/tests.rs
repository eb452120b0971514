use super::*;
use crate::order::Protocol;
use crate::target::Address;

fn origin(port: u16) -> Origin {
    let addresses = vec![Address::Tcp(([127, 0, 0, 1], port).into())];
    Origin {
        addresses,
        protocol: Protocol::Http1,
        handshake: None,
        tls: None,
        tls_files: None,
        stamped: false,
    }
}

#[test]
fn connections_have_one_owner_and_the_epoch_of_their_slot() {
    let mut pool = Pool::default();
    pool.begin_slot();
    let first = pool.claim(&origin(1), 0, &[(Role::Load, 3), (Role::Idle, 2)]);
    let old = Event { data: pool.key(first[4]), flags: EventFlags::IN };
    assert_eq!(pool.connection_of(&old), Some(first[4]));
    pool[first[4]].state = State::Idle;
    pool.begin_slot();
    let second = pool.claim(&origin(2), 0, &[(Role::Load, 4)]);
    assert!(first.iter().all(|id| !second.contains(id)));
    // The other origin's: nobody's event, and closed.
    assert_eq!((pool.connection_of(&old), pool[first[4]].state), (None, State::Closed));
}

#[test]
fn origins_that_nobody_asks_any_more_are_forgotten() {
    let mut pool = Pool::default();
    for port in 1..2000 {
        pool.begin_slot();
        pool.claim(&origin(port), 0, &[(Role::Load, 2)]);
    }
    assert!(pool.owned.len() <= MOST_ORIGINS + 1, "{}", pool.owned.len());
    assert!(pool.conns.len() <= 2 * (MOST_ORIGINS + 2), "{}", pool.conns.len());
    let ids: Vec<_> = pool.owned.values().flat_map(|owned| &owned.ids).collect();
    let all: std::collections::HashSet<_> = ids.iter().collect();
    assert_eq!(ids.len(), all.len());
}

#[test]
fn a_smaller_slot_closes_the_rest() {
    let mut pool = Pool::default();
    pool.begin_slot();
    let ids = pool.claim(&origin(1), 0, &[(Role::Load, 3)]);
    ids.iter().for_each(|id| pool[*id].state = State::Idle);
    pool.begin_slot();
    assert_eq!(pool.claim(&origin(1), 0, &[(Role::Load, 1)]), ids[..1]);
    let states: Vec<State> = ids.iter().map(|id| pool[*id].state).collect();
    assert_eq!(states, [State::Idle, State::Closed, State::Closed]);
}
