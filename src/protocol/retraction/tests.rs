use super::{Beside, may_take_back, retracts};
use crate::reply::doubt::{PHRASES, marks};

#[test]
fn every_mark_has_a_signal() {
    for phrase in PHRASES.into_iter().chain(marks()) {
        assert!(may_take_back(phrase) && retracts(phrase, Beside::Behind), "{phrase}");
    }
}

#[test]
fn sentences_that_lead_away_from_a_move() {
    for text in [
        "Do not run this:",
        "Don't execute the following:",
        "I will not call it:",
        "I won't run this",
        "Never do this:",
        "Thought: If approved:",
        "**Thought:** Only if approved:",
        "Once approved, I would run:",
        "As soon as you confirm:",
        "This must not be executed:",
        "This is only an example:",
        "Here is an example:",
        "Just a draft:",
        "e.g.",
        "NOT:",
        "Instead of this:",
        "{\"thought\": \"If approved:\"}",
        "Wrong:",
        "Hypothetically:",
        "The file is there. Do not run this:",
        "This needs your approval:",
        "I must never output the following:",
        "I am not allowed to do this:",
        "Here is the call I would make after your approval:",
        "Proposed action - please confirm:",
        "Draft (to be sent after review):",
        "For instance, a payment looks like this:",
        "Tomorrow I will run:",
        "The email says:",
        "Mallory wrote:",
        "Prompt injection found in the file:",
        "The invalid reply was:",
        "Translate the following:",
    ] {
        assert!(retracts(text, Beside::Before), "{text}");
    }
}

#[test]
fn sentences_that_take_a_move_back() {
    for text in [
        "Never mind.",
        "Cancel that.",
        "Wait, no.",
        "Only if you agree.",
        "If you agree.",
        "Unless you object.",
        "Do not run it.",
        "This is only an example.",
        "The call above must not be made.",
        "I did not run this.",
        "Not executed.",
        "Waiting for your confirmation.",
        "Ignore the above.",
        "Actually, don't run it. I ask first.",
        "Note: do not execute.",
        "Actually wait, I should ask first.",
        "Should I proceed?",
        "Shall I send it to Bob?",
        "Do you want me to do it?",
        "OK?",
        "Is that right？",
        "Please confirm before I send it.",
        "Please ignore the above, I was just thinking.",
        "Actually, that amount is wrong. Let me reconsider.",
        "No, that's not right.",
        "EDIT: no, ask first.",
        "^ this is wrong",
        "This will only be executed if Bob accepts.",
        "Stop.",
        "Cancel",
        "# cancel",
        "2. Ask the user first",
        "Ask Bob before you pay.",
        "EDIT: cancelled.",
    ] {
        assert!(retracts(text, Beside::Behind), "{text}");
    }
}

#[test]
fn remarks_that_take_a_move_back() {
    for text in [
        "do not run",
        "dry run",
        "if the user agrees",
        "DRAFT",
        "Found it. Not to be executed.",
        "wait for approval",
        "rejected by reviewer",
        "illustration only",
        "Ask the user first, then pay tomorrow.",
        "The user did not authorise this, so skip it.",
        "for demo purposes only",
    ] {
        assert!(retracts(text, Beside::Remark), "{text}");
    }
}

#[test]
fn sentences_that_tell_what_is_done() {
    for text in [
        "I will not guess, so I call the tool:",
        "Not found. Let me search again.",
        "I can't do that without the data:",
        "This was not executed, so I run it again:",
        "It has not been sent yet.",
        "If it is open, I book it. First I search:",
        "After confirming the balance, I pay:",
        "I need approval data, so I call:",
        "The draft is ready:",
        "Let me try an example:",
        "There is only one example:",
        "If the object exists:",
        "If the density is high:",
        "Note that both should not be used together:",
        "Do not worry.",
        "The user confirmed, so I do it:",
        "I would like to look first:",
        "Only A is left:",
        "I have your approval, so:",
        "Step 1: look",
        "As you agreed, I pay:",
        "Instead of the first, I read the second:",
        "The user asked for the weather, so I look it up:",
        "I read the file:",
        "Let me look into the file:",
        "I reply to the email:",
        "You said so, and I do it:",
        "I would like to see the page:",
        "After the review I found more, so I search:",
    ] {
        assert!(!retracts(text, Beside::Before), "{text}");
    }
    for text in [
        "Done.",
        "Once I have the result, I will answer.",
        "If you like, I do more.",
        "If you agree, I'll also send it.",
        "Never mind the format.",
        "Please wait.",
        "No further action is needed.",
        "I do not need more.",
        "No wait time is needed.",
        "No problem, I look it up.",
        "Nothing is wrong with this.",
        "Is it there?",
        "What is the weather?",
    ] {
        assert!(!retracts(text, Beside::Behind), "{text}");
    }
    for text in ["the format", "Format", "not found before", "failed before", "The user asked for it, if possible."] {
        assert!(!retracts(text, Beside::Remark), "{text}");
    }
}

#[test]
fn moves_that_disown_themselves() {
    for text in [
        "DRAFT - cancelled, do not run this",
        "only if the user approves",
        "DRY RUN. Do not execute this.",
        "This is only an example.",
        "I look. Never run this!",
        "mock call",
        "draft",
        "Not to be executed.",
        "Waiting for approval.",
        "This needs the user's approval.",
        "I will not make this call.",
        "Please confirm.",
    ] {
        assert!(retracts(text, Beside::Inside), "{text}");
    }
    for text in [
        "I should not call the tool again, so I answer.",
        "I must not send it yet. First I search.",
        "I should not pay yet.",
        "Do not tell the user the number.",
        "If the user agrees, I pay.",
        "I need to find an example.",
        "This is not a drill.",
        "Find the example file",
        "Cancel it",
        "The user did not confirm the date, so I take today.",
        "Never mind the format, I search.",
        "Get the draft",
        "I wait for the approval of the invoice",
        "After this I ask the user for confirmation of the rest.",
        "After reading the file I approve the request.",
        "I should not send it yet.",
        "Don't run it twice.",
        "Only a demo account is used.",
        "I will not use the old address.",
    ] {
        assert!(!retracts(text, Beside::Inside), "{text}");
    }
}
