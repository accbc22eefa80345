"""Checks that the examples of deploy/ are valid and consistent with each other."""

import os
import re
import subprocess
from pathlib import Path

import compose_spec
import kubernetes_validate
import pytest
import yaml

DEPLOY = Path(__file__).parents[2] / "deploy"
KUBERNETES = list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text()))


def test_compose_accepts_its_file():
    parsed = compose_spec.PyCompose.from_yaml(merged())
    parsed.validate()
    assert {"node-1", "node-2", "node-3", "nginx", "postgres", "redis"} == set(parsed.service_names())


def merged() -> str:
    """Returns the file with its anchors resolved, as Compose reads it."""
    return yaml.safe_dump(yaml.safe_load((DEPLOY / "compose.yaml").read_text()))


def test_a_key_that_compose_does_not_know_is_not_accepted():
    with pytest.raises(ValueError, match="restarts"):
        compose_spec.PyCompose.from_yaml(merged().replace("restart:", "restarts:"))


@pytest.mark.parametrize("document", KUBERNETES, ids=lambda document: document["kind"])
def test_kubernetes_accepts_its_objects(document):
    kubernetes_validate.validate(document, "1.36", strict=True)


def test_a_key_that_kubernetes_does_not_know_is_not_accepted():
    deployment = next(document for document in KUBERNETES if document["kind"] == "Deployment")
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(deployment | {"spec": deployment["spec"] | {"replica": 3}}, "1.36", strict=True)


def test_labels_ports_and_claims_meet():
    by_kind = {document["kind"]: document for document in KUBERNETES}
    pod = by_kind["Deployment"]["spec"]["template"]
    for selector in (by_kind["Service"]["spec"]["selector"], by_kind["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"]):
        assert selector.items() <= pod["metadata"]["labels"].items()
    claims = [volume["persistentVolumeClaim"]["claimName"] for volume in pod["spec"]["volumes"] if "persistentVolumeClaim" in volume]
    assert claims == [by_kind["PersistentVolumeClaim"]["metadata"]["name"]]


def test_compose_accepts_the_file_with_the_web_ui():
    parsed = compose_spec.PyCompose.from_yaml(ui())
    parsed.validate()
    assert {"gateway", "frontend", "nginx"} == set(parsed.service_names())


def ui() -> str:
    """Returns the file with the web UI as Compose reads it without variables."""
    text = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", (DEPLOY / "compose.ui.yaml").read_text())
    return re.sub(r"\$\{UI:\?[^}]*\}", "/ui", text)


def test_gateway_trusts_the_network_of_nginx_only():
    file = yaml.safe_load(ui())
    subnet = file["networks"]["proxied"]["ipam"]["config"][0]["subnet"]
    assert file["services"]["gateway"]["environment"]["AUTH_TRUSTED_PROXIES"] == subnet
    assert "ports" not in file["services"]["gateway"], "only nginx is published"


def test_nginx_passes_the_api_and_pages_to_services_of_compose():
    targets = set(re.findall(r"proxy_pass http://(\w+):", (DEPLOY / "nginx.ui.conf").read_text()))
    assert targets == {"gateway", "frontend"} <= set(yaml.safe_load(ui())["services"])


def test_nginx_knows_the_nodes_of_compose():
    nodes = [name for name in yaml.safe_load(merged())["services"] if name.startswith("node-")]
    assert re.findall(r"server (\S+):8001", (DEPLOY / "nginx.conf").read_text()) == nodes


def test_the_configuration_is_one_that_the_server_takes():
    binary = Path(os.environ["DEERFLOW_BIN_DIR"]) / "deerflow"
    variables = {"DATABASE_URL": "postgres://localhost/x", "REDIS_URL": "redis://localhost"}
    checked = subprocess.run([binary, "config", "check", "--config", DEPLOY / "config.yaml"], env=variables, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "warning" not in (checked.stdout + checked.stderr).lower()
