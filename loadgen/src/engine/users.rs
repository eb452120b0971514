//! Who asks where connections are users: what each has kept, and where it stands in its flow.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use rand::rngs::SmallRng;

use crate::http1::cookies::CookieJar;
use crate::order::{Order, Request, Session};
use crate::session::script::Script;
use crate::session::values::Sources;
use crate::target::Target;

/// An order's requests as users go through them.
#[derive(Debug)]
pub struct Sessions {
    pub sources: Sources,
    /// By their first request.
    flows: Vec<Option<Flow>>,
    /// Requests of the login among the plan's, and the sources that they need.
    pub login: Range<usize>,
    login_draws: Vec<usize>,
    /// Users of another key are others.
    key: Key,
    pub trace: bool,
    /// Users keep cookies, and that is all.
    pub is_bare: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Key {
    Given(String),
    OfOneOrder(u64),
}

impl Default for Key {
    fn default() -> Self {
        Key::Given(String::new())
    }
}

impl Key {
    fn of_one_order() -> Key {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Key::OfOneOrder(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// Requests that follow each other.
#[derive(Debug, Clone)]
pub struct Flow {
    pub steps: Range<usize>,
    draws: Vec<usize>,
    /// Of the flow as a whole.
    pub endpoint: Option<usize>,
}

impl Sessions {
    /// None where all connections ask alike.
    pub fn of(order: &Order) -> Result<Option<Sessions>, String> {
        let requests = || order.requests.iter();
        let is_needed = |request: &Request| {
            request.flow.is_some()
                || !request.capture.is_empty()
                || !request.expect.contains.is_empty()
        };
        let is_bare = order.session.is_none() && !requests().any(is_needed);
        if is_bare && !order.load.cookies {
            return Ok(None);
        }
        // Bare cookies are kept as long as their connections are.
        let bare = || Session { key: Some(String::new()), ..Session::default() };
        let session = order.session.clone().unwrap_or_else(bare);
        let captured = session.login.iter().chain(requests()).flat_map(|request| &request.capture);
        let users = (order.load.connections * order.load.streams.unwrap_or(1)) as usize;
        let sources = Sources::new(&session, captured.map(|(name, _)| name), users)?;
        let many = order.requests.len();
        Ok(Some(Sessions {
            sources,
            flows: Vec::new(),
            login: many..many + session.login.len(),
            login_draws: Vec::new(),
            key: session.key.map_or_else(Key::of_one_order, Key::Given),
            trace: order.trace.is_some(),
            is_bare,
        }))
    }

    /// Completes it when the scripts of all requests are there. `endpoint` gives the number of one.
    pub fn complete(
        &mut self,
        order: &Order,
        scripts: &[Option<&Script>],
        mut endpoint: impl FnMut(&str) -> usize,
    ) {
        let values =
            |steps: Range<usize>| scripts[steps].iter().copied().flatten().flat_map(Script::values);
        self.login_draws = self.sources.of(values(self.login.clone()));
        self.flows = flows(&order.requests)
            .into_iter()
            .map(|flow| {
                let (steps, name) = flow?;
                let draws = self.sources.of(values(steps.clone()));
                Some(Flow { steps, draws, endpoint: name.map(&mut endpoint) })
            })
            .collect();
    }

    pub fn script(&self, request: &Request, target: &Target) -> Result<Script, String> {
        Script::new(request, target, &self.sources)
    }

    fn flow(&self, first: usize) -> Option<&Flow> {
        self.flows.get(first)?.as_ref()
    }
}

/// For each request: the flow that begins with it, if one does, with its name if it has one.
pub fn flows(requests: &[Request]) -> Vec<Option<(Range<usize>, Option<&str>)>> {
    let mut flows = Vec::with_capacity(requests.len());
    while flows.len() < requests.len() {
        let first = flows.len();
        let name = requests[first].flow.as_deref();
        let alike = |other: &&Request| name.is_some() && other.flow.as_deref() == name;
        let many = requests[first..].iter().take_while(alike).count().max(1);
        flows.push(Some((first..first + many, name)));
        flows.resize(first + many, None);
    }
    flows
}

/// Where a user stands.
#[derive(Debug, Clone, Default)]
pub enum Place {
    /// Nothing is begun.
    #[default]
    Free,
    /// In the login, at this of the plan's requests.
    Login(usize),
    In(Begun),
}

/// A flow on its way.
#[derive(Debug, Clone)]
pub struct Begun {
    pub flow: Flow,
    /// This of the plan's requests comes next, or is asked.
    pub step: usize,
    /// What its answers so far took.
    pub spent_ns: u64,
    /// It was due in the window.
    pub is_in_window: bool,
}

#[derive(Debug, Default)]
pub struct User {
    /// Among all of the slot.
    pub number: usize,
    pub logged_in: bool,
    pub place: Place,
    pub jar: CookieJar,
    key: Key,
    values: Vec<Vec<u8>>,
    /// As it is asked, and where its path stands.
    request: Vec<u8>,
    path: Range<usize>,
    /// Of the answer, as far as it is read.
    body: Vec<u8>,
}

impl User {
    /// `row`: whose values it has for good.
    pub fn new(number: usize, row: usize, sessions: &Sessions) -> User {
        let mut values = vec![Vec::new(); sessions.sources.names.len()];
        sessions.sources.settle(row, &mut values);
        let key = sessions.key.clone();
        User { number, key, values, logged_in: sessions.login.is_empty(), ..User::default() }
    }

    /// It is the same user for these sessions as for those that it was made for.
    pub fn stays(&self, number: usize, sessions: &Sessions) -> bool {
        self.key == sessions.key
            && self.number == number
            && self.values.len() == sessions.sources.names.len()
    }

    pub fn begin_login(&mut self, sessions: &Sessions, rng: &mut SmallRng) {
        self.place = Place::Login(sessions.login.start);
        sessions.sources.draw(&sessions.login_draws, &mut self.values, rng);
    }

    /// Begins the flow that a request is the first of.
    pub fn begin_flow(&mut self, first: usize, sessions: &Sessions, rng: &mut SmallRng) {
        let Some(flow) = sessions.flow(first) else { return };
        sessions.sources.draw(&flow.draws, &mut self.values, rng);
        if flow.steps.len() > 1 || flow.endpoint.is_some() {
            let flow = flow.clone();
            self.place = Place::In(Begun { flow, step: first, spent_ns: 0, is_in_window: false });
        }
    }

    /// The next of the plan's requests, where something is begun.
    pub fn next(&self) -> Option<usize> {
        match &self.place {
            Place::Free => None,
            Place::Login(step) => Some(*step),
            Place::In(begun) => Some(begun.step),
        }
    }

    /// Writes its request.
    pub fn write(&mut self, script: &Script, close: bool) {
        self.body.clear();
        self.path = script.write(&self.values, &self.jar, close, &mut self.request);
    }

    pub fn request(&self) -> &[u8] {
        &self.request
    }

    pub fn value(&self, number: usize) -> Vec<u8> {
        self.values[number].clone()
    }

    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// Keeps what comes of an answer's body, up to so many bytes of it.
    pub fn read(&mut self, data: &[u8], kept_bytes: usize) {
        let room = kept_bytes.saturating_sub(self.body.len());
        self.body.extend_from_slice(&data[..data.len().min(room)]);
    }

    /// Takes what an answer gives, and says what is missing in a valid one.
    pub fn take(&mut self, script: &Script, head: &[u8], is_valid: bool) -> Option<String> {
        let path = str::from_utf8(&self.request[self.path.clone()]).unwrap_or("/");
        self.jar.keep(head, path);
        if !is_valid {
            return None;
        }
        script.take(head, &self.body, &self.jar, &mut self.values).err()
    }
}

/// The users of a thread log in.
#[derive(Debug, Default)]
pub struct Login {
    pub waiting: VecDeque<usize>,
    pub under_way: usize,
    /// Who was not let in, at which step, and why.
    pub failure: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_are_what_stands_together() {
        let names = [None, Some("a"), Some("a"), Some("b"), Some("a"), None];
        let request = |flow: &Option<&str>| Request {
            flow: flow.map(Into::into),
            ..Request::get("http://h/".into())
        };
        let requests: Vec<_> = names.iter().map(request).collect();
        let flows = flows(&requests);
        let length = |flow: &Option<(Range<usize>, _)>| flow.as_ref().map(|(steps, _)| steps.len());
        let lengths: Vec<_> = flows.iter().map(length).collect();
        assert_eq!(lengths, [Some(1), Some(2), None, Some(1), Some(1), Some(1)]);
        assert_eq!(flows[1].as_ref().and_then(|(_, name)| *name), Some("a"));
    }
}
