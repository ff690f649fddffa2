"""The images of an object's containers, for the kinds that contain a pod spec or a pod template."""

import msgspec

_KINDS = frozenset(
    (
        "pods",
        "podtemplates",
        "replicationcontrollers",
        "daemonsets.apps",
        "deployments.apps",
        "replicasets.apps",
        "statefulsets.apps",
        "cronjobs.batch",
        "jobs.batch",
    )
)


class _Container(msgspec.Struct):
    image: str = ""


class _PodSpec(msgspec.Struct, rename="camel"):
    containers: list[_Container] | None = None
    init_containers: list[_Container] | None = None


class _Template(msgspec.Struct):
    spec: _PodSpec | None = None


class _JobSpec(msgspec.Struct):
    template: _Template | None = None


class _JobTemplate(msgspec.Struct):
    spec: _JobSpec | None = None


class _Spec(_PodSpec, rename="camel"):
    template: _Template | None = None
    job_template: _JobTemplate | None = None


class _Object(msgspec.Struct):
    spec: _Spec | None = None
    template: _Template | None = None


_decoder = msgspec.json.Decoder(_Object)


def has_images(kind: str) -> bool:
    return kind in _KINDS


def images_of(body: bytes | msgspec.Raw) -> frozenset[str]:
    """Raises `msgspec.DecodeError` if `body` is not an object of such a kind."""
    obj = _decoder.decode(body)
    spec = obj.spec or _Spec()
    job = spec.job_template.spec if spec.job_template else None
    templates = (obj.template, spec.template, job.template if job else None)
    pods = (spec, *(template.spec for template in templates if template and template.spec))
    containers = (one for pod in pods for one in (*(pod.containers or ()), *(pod.init_containers or ())))
    return frozenset(container.image for container in containers if container.image)
