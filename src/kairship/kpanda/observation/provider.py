"""Guesses the provider of a cluster from one of its nodes. A user can override the guess."""

from collections.abc import Mapping

_BY_LABEL = (
    ("eks.amazonaws.com/", "AWS_EKS"),
    ("kubernetes.azure.com/", "MICROSOFT_AZURE"),
    ("alibabacloud.com/", "ALIYUN_ACK"),
    ("cloud.tencent.com/", "TENCENT_TKE"),
    ("cce.cloud.com/", "HUAWEI_CCE"),
    ("node.openshift.io/", "REDHAT_OPENSHIFT4"),
    ("run.tanzu.vmware.com/", "VMWARE_TANZU"),
    ("rke.cattle.io/", "SUSE_RANCHER"),
    ("cattle.io/", "SUSE_RANCHER"),
)
_BY_PROVIDER_ID = (
    ("aws://", "AWS_EKS"),
    ("azure://", "MICROSOFT_AZURE"),
    ("alicloud://", "ALIYUN_ACK"),
    ("qcloud://", "TENCENT_TKE"),
    ("rke2://", "SUSE_RANCHER"),
    ("k3s://", "SUSE_RANCHER"),
)


def provider_of(provider_id: str, labels: Mapping[str, str]) -> str:
    """Empty if nothing identifies it. Labels come first: a cluster in a cloud need not be that cloud's own service."""
    for domain, provider in _BY_LABEL:
        if any(domain in key for key in labels):
            return provider
    for prefix, provider in _BY_PROVIDER_ID:
        if provider_id.startswith(prefix):
            return provider
    # The provider IDs of Alibaba Cloud have no scheme: cn-hangzhou.i-bp1….
    region, dot, machine = provider_id.partition(".")
    return "ALIYUN_ACK" if dot and machine.startswith("i-") and "-" in region and "/" not in region else ""
