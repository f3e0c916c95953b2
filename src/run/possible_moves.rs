//! The moves that the next reply can make, for its grammar.

use super::machine::RunMachine;
use crate::protocol::grammar::{Bounds, Grammar, Scope};
use crate::ticket::{Status, TicketId};

/// The moves that the next reply can make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PossibleMoves {
    /// Whether a call can be made.
    pub calls: bool,
    /// Whether a task can be delegated (ticket).
    pub delegates: bool,
    /// Whether the run can be finished.
    pub finish: bool,
    /// Ids of the tickets in progress (ticket).
    pub in_progress: Vec<String>,
    /// Ids of the completed tickets (ticket).
    pub completed: Vec<String>,
    /// The tickets whose results can be read in parts, and the bytes of the longest one, once a result was cut.
    pub results: Option<(Vec<TicketId>, usize)>,
    /// Call ids of the agents in the background (chatty).
    pub agents: Vec<String>,
}

impl RunMachine {
    /// The moves that the next reply can make.
    pub fn possible_moves(&self) -> PossibleMoves {
        let (state, setup) = (&self.state, &self.setup);
        let calls = state.position.last_turn.is_none() && !state.conversation.refused.leaves_an_answer();
        let called = !setup.call_first || state.calls.called || !calls;
        // An answer before any result was read would be made up: a call is to come first so that there is one.
        let finish =
            called && (!setup.call_first || !calls || !setup.protocol.background() || state.conversation.has_read());
        let ids = |status: Status| -> Vec<String> {
            // Other protocols have no moves that name a ticket.
            let named = calls && setup.protocol.background();
            let tickets = state.calls.tickets.iter().filter(move |ticket| named && ticket.status() == status);
            tickets.map(|ticket| ticket.id.to_string()).collect()
        };
        let (in_progress, completed) = (ids(Status::InProgress), ids(Status::Completed));
        let mut agents: Vec<String> = Vec::new();
        for agent in
            state.calls.tickets.iter().filter(|ticket| calls && ticket.detached).filter_map(|t| t.call_id.clone())
        {
            if !agents.contains(&agent) {
                agents.push(agent);
            }
        }
        // A first move that must be a call is no task for others.
        let delegates = setup.offers_delegation() && (finish || !in_progress.is_empty() || !completed.is_empty());
        let results = (calls && state.conversation.long.has_cut).then(|| state.readable_results());
        PossibleMoves { calls, delegates, finish, in_progress, completed, results, agents }
    }

    /// The coming reply is written under a grammar with these bounds, which explain why it is cut.
    pub fn bound_reply(&mut self, bounds: Option<Bounds>) {
        self.given.bounds = bounds;
    }

    /// The grammar of these moves, with at most so many characters of thoughts, for a model with these bounds.
    pub fn grammar(&self, moves: &PossibleMoves, thoughts: Option<u32>, bounds: Option<Bounds>) -> Grammar {
        let PossibleMoves { calls, delegates, finish, in_progress, completed, results, agents } = moves.clone();
        let tools = self.tools_for_grammar(results.as_ref());
        let tools = &*tools;
        let longest = results.filter(|_| self.setup.protocol.loads_results()).map(|(_, longest)| longest);
        let scope =
            Scope { tools, calls, delegates, finish, in_progress, completed, longest, agents, thoughts, bounds };
        self.setup.protocol.grammar(&scope)
    }
}
