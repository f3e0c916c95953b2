//! What a tree of runs has spent: each run draws from its own limits and from those of every run above it.

use super::event::Usage;
use super::limits::{Limit, Limits};
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What runs have cost, and opened.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "fields whose names say it have no comment")]
pub struct Spent {
    /// Tokens and cost of the replies.
    pub usage: Usage,
    pub tickets: u32,
    pub runs: u32,
}

impl Spent {
    /// Adds what others have spent.
    pub fn add(&mut self, other: &Self) {
        self.usage += other.usage;
        self.tickets = self.tickets.saturating_add(other.tickets);
        self.runs = self.runs.saturating_add(other.runs);
    }

    /// Takes what is more in `other`.
    fn raise_to(&mut self, other: &Self) {
        let (mine, others) = (&mut self.usage, &other.usage);
        mine.input_tokens = mine.input_tokens.max(others.input_tokens);
        mine.output_tokens = mine.output_tokens.max(others.output_tokens);
        mine.cached_tokens = mine.cached_tokens.max(others.cached_tokens);
        mine.cost = mine.cost.max(others.cost);
        self.tickets = self.tickets.max(other.tickets);
        self.runs = self.runs.max(other.runs);
    }

    /// The difference to `other`, if there is any.
    fn minus(&self, other: &Self) -> Option<Self> {
        let usage = self.usage.minus(&other.usage);
        let tickets = self.tickets.saturating_sub(other.tickets);
        let rest = Self { usage, tickets, runs: self.runs.saturating_sub(other.runs) };
        (!rest.is_nothing()).then_some(rest)
    }

    pub(super) fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// The limit of tokens or cost that this has reached.
    pub(super) fn limit_reached(&self, limits: &Limits) -> Option<Limit> {
        let tokens = self.usage.input_tokens.saturating_add(self.usage.output_tokens);
        if limits.tokens.is_some_and(|limit| tokens >= limit) {
            return Some(Limit::Tokens);
        }
        limits.cost.is_some_and(|limit| self.usage.cost >= limit).then_some(Limit::Cost)
    }

    /// The limit of tickets or runs that this exceeds.
    pub(super) fn limit_exceeded(&self, limits: &Limits) -> Option<Limit> {
        if limits.tickets.is_some_and(|limit| self.tickets > limit) {
            return Some(Limit::Tickets);
        }
        limits.runs.is_some_and(|limit| self.runs > limit).then_some(Limit::Runs)
    }
}

/// The account of one run under way: what it and the runs below it have spent.
#[derive(Debug)]
pub struct Account {
    parent: Option<Arc<Self>>,
    limits: Limits,
    spent: Mutex<Spent>,
}

impl Account {
    /// The account of a run with these limits, which has spent this much already. It is drawn from those above too.
    pub fn open(parent: Option<Arc<Self>>, limits: Limits, spent: Spent) -> Arc<Self> {
        let account = Arc::new(Self { parent, limits, spent: Mutex::default() });
        account.spend(&spent);
        account
    }

    /// Adds what was spent, here and above.
    pub fn spend(&self, spent: &Spent) {
        for account in self.chain() {
            account.lock().add(spent);
        }
    }

    /// At least these amounts were spent: here, then by the run above it, and so on.
    pub fn at_least(&self, spent: &[Spent]) {
        for (account, spent) in self.chain().zip(spent) {
            account.lock().raise_to(spent);
        }
    }

    /// The difference between the amounts of this account and these, if there is any.
    pub(super) fn minus(&self, spent: &Spent) -> Option<Spent> {
        self.lock().minus(spent)
    }

    /// The limit of tokens or cost that is reached, here or above.
    pub(super) fn limit_reached(&self) -> Option<Limit> {
        self.chain().find_map(|account| account.lock().limit_reached(&account.limits))
    }

    /// The limits of tokens and cost that there are, here or above.
    pub(super) fn usage_limits(&self) -> Vec<Limit> {
        self.chain().flat_map(|account| account.limits.of_usage()).collect()
    }

    /// Reserves tickets and runs here and in all accounts above, or nothing.
    pub(super) fn reserve(&self, tickets: u32, runs: u32) -> Result<(), Limit> {
        let wanted = Spent { tickets, runs, ..Spent::default() };
        // All are held until all have agreed. They are always taken from below upwards.
        let mut held: Vec<MutexGuard<'_, Spent>> = Vec::new();
        for account in self.chain() {
            let spent = account.lock();
            let mut after = *spent;
            after.add(&wanted);
            if let Some(limit) = after.limit_exceeded(&account.limits) {
                return Err(limit);
            }
            held.push(spent);
        }
        for mut spent in held {
            spent.add(&wanted);
        }
        Ok(())
    }

    fn chain(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |account| account.parent.as_deref())
    }

    fn lock(&self) -> MutexGuard<'_, Spent> {
        self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(tickets: u32) -> Limits {
        Limits { tickets: Some(tickets), tokens: Some(100), ..Limits::default() }
    }

    fn tokens(count: u64) -> Spent {
        Spent { usage: Usage { input_tokens: count, ..Usage::default() }, ..Spent::default() }
    }

    #[test]
    fn what_is_reserved_is_there_at_every_level_or_nothing_is_taken() {
        let root = Account::open(None, limits(3), Spent::default());
        let child = Account::open(Some(Arc::clone(&root)), limits(9), Spent::default());
        assert_eq!(child.reserve(2, 0), Ok(()));
        assert_eq!(child.reserve(2, 0), Err(Limit::Tickets));
        assert_eq!((child.lock().tickets, root.lock().tickets), (2, 2));
        assert_eq!(root.reserve(1, 0), Ok(()));
    }

    #[test]
    fn what_others_have_spent_is_added_to_nothing_twice() {
        let root = Account::open(None, limits(3), tokens(40));
        let child = Account::open(Some(Arc::clone(&root)), limits(9), Spent::default());
        child.spend(&tokens(10));
        child.at_least(&[tokens(10), tokens(90)]);
        assert_eq!((child.lock().usage.input_tokens, root.lock().usage.input_tokens), (10, 90));
        child.spend(&tokens(10));
        assert_eq!(child.limit_reached(), Some(Limit::Tokens));
        child.at_least(&[tokens(10), tokens(90)]);
        assert_eq!((child.lock().usage.input_tokens, root.lock().usage.input_tokens), (20, 100));
    }

    #[test]
    fn siblings_draw_from_one_account() {
        let root = Account::open(None, limits(3), tokens(10));
        let children = [(); 2].map(|()| Account::open(Some(Arc::clone(&root)), limits(9), Spent::default()));
        children[0].spend(&tokens(60));
        assert_eq!(children[1].limit_reached(), None);
        children[1].spend(&tokens(30));
        assert_eq!(children[0].limit_reached(), Some(Limit::Tokens));
    }
}
