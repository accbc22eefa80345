"""Clarifications, as DeerFlow does them."""

from messages import call, visible_messages, user


def test_clarification_ends_the_run_and_its_answer_starts_one(client, thread):
    question = call("ask_clarification", question="Which colour?", clarification_type="approach_choice", options=["red", "blue"])
    parts = list(client.runs.stream(thread, "lead_agent", input=user(f"Paint it {question} then say never"), stream_mode="values"))
    values = [part.data for part in parts if part.event == "values"][-1]
    assert "__interrupt__" not in values
    card = values["messages"][-1]
    assert (card["type"], card["name"]) == ("tool", "ask_clarification")
    asked = card["artifact"]["human_input"]
    assert (asked["question"], [option["label"] for option in asked["options"]]) == ("Which colour?", ["red", "blue"])
    run = parts[0].data["run_id"]
    assert client.runs.get(thread, run)["status"] == "success"
    assert client.threads.get(thread)["status"] == "idle"
    answer = {
        "role": "user",
        "content": "My answer is: blue then say Painted.",
        "additional_kwargs": {
            "hide_from_ui": True,
            "human_input_response": {
                "version": 1,
                "kind": "human_input_response",
                "source": "ask_clarification",
                "request_id": asked["request_id"],
                "response_kind": "option",
                "option_id": "option-2",
                "value": "blue",
            },
        },
    }
    after = client.runs.wait(thread, "lead_agent", input={"messages": [answer]})
    assert visible_messages(after)[-1] == ("ai", "Painted.")
