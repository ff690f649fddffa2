"""Objects of Karmada, Kubernetes and the plane that people do not change, and addresses that the API server would call.

Administrators of an instance write RBAC, definitions and webhook configurations of their own. Those that belong to the
instance itself stay as they are, and none may lead the API server to an address that a person chose, or show a person
what others write.
"""

from kairship.instances.admission.people import PEOPLE
from kairship.instances.admission.policy import CREATE, DELETE, UPDATE, Policy, Target, Validation

_ALL = (CREATE, UPDATE, DELETE)
_ACCESS_LABEL = "kairship.io/access"
_OWN_GROUPS = "(^|[.])(karmada[.]io|kairship[.]io|kpanda[.]io|ghippo[.]io|multicluster[.]x-k8s[.]io)$"
_BUILT_IN_GROUPS = "(^|[.])(k8s[.]io|kubernetes[.]io|karmada[.]io|kairship[.]io|x-k8s[.]io)$|^[^.]*$"
_RESERVED_NAMESPACES = "^(kube-.*|karmada-system|karmada-cluster|karmada-es-.*|kairship-system)$"

# The object before or after the request, whichever there is: a deletion has no new object, a creation no old one.
_EITHER = "(object != null ? object : oldObject)"
_GENERATED_NAME = f"(has({_EITHER}.metadata.generateName) ? {_EITHER}.metadata.generateName : '')"


def _has_label(which: str, label: str) -> str:
    return f"({which} != null && has({which}.metadata.labels) && '{label}' in {which}.metadata.labels)"


_RESERVED_ROLE = "'^(kairship|karmada)-|^system:'"
_ROLES = Validation(
    f"!{_has_label('object', _ACCESS_LABEL)} && !{_has_label('oldObject', _ACCESS_LABEL)}"
    f" && !{_has_label('oldObject', 'kubernetes.io/bootstrapping')}"
    f" && !request.name.matches({_RESERVED_ROLE}) && !({_GENERATED_NAME}.matches({_RESERVED_ROLE}))",
    "roles and bindings of Kubernetes, of Karmada and of the plane are not changed by hand; choose another name, and "
    "grant roles of the plane in global management",
)

_DEFINITION_GROUP = Validation(
    f"!{_EITHER}.spec.group.matches('{_OWN_GROUPS}')",
    "definitions of Karmada and of the plane belong to the instance and are changed by its upgrade",
)
_CONVERSION = Validation(
    "object == null || !has(object.spec.conversion) || object.spec.conversion.strategy == 'None'"
    " || (oldObject != null && oldObject.spec.conversion == object.spec.conversion)",
    "spec.conversion: a conversion webhook would see every object of this kind, and is set up by the operator of the "
    "instance; use the strategy None",
)

_WEBHOOKS = "(object != null && has(object.webhooks) ? object.webhooks : [])"
_WEBHOOKS_BEFORE = "(oldObject != null && has(oldObject.webhooks) ? oldObject.webhooks : [])"
_WEBHOOK_RULES = Validation(
    f"{_WEBHOOKS}.all(each, !has(each.rules) || each.rules.all(rule, "
    "!has(rule.apiGroups) || rule.apiGroups.all(group, group.contains('.') && !group.matches("
    "'(karmada|kairship)[.]io$|^(rbac[.]authorization|authentication|authorization|admissionregistration|apiextensions"
    "|apiregistration|certificates|internal[.]apiserver|storage)[.]k8s[.]io$'))"
    " || rule.apiGroups.all(group, group in ['apps', 'batch', 'policy', 'autoscaling'])))",
    "webhooks[].rules: a webhook may be about custom resources, workloads and networking; for other API groups it "
    "would see the Secrets, roles and Works of others. Name the API groups that it needs",
)
_WEBHOOK_ADDRESS = Validation(
    f"{_WEBHOOKS}.all(each, !has(each.clientConfig.url)) && {_WEBHOOKS_BEFORE}.all(each, !has(each.clientConfig.url))",
    "webhooks[].clientConfig.url: the API server would connect to that address; name a Service instead. Webhooks that "
    "have an address are those of Karmada and of the operator, and are not changed by hand",
)

_API_SERVICE = Validation(
    f"!{_EITHER}.spec.group.matches('{_BUILT_IN_GROUPS}')",
    "an APIService for a group of Kubernetes, of Karmada or of the plane would answer in their place; "
    "use a group of your own",
)

POLICIES = (
    Policy(
        name="kairship-protected-roles",
        targets=(
            Target("rbac.authorization.k8s.io", ("roles", "rolebindings", "clusterroles", "clusterrolebindings"), _ALL),
        ),
        conditions=PEOPLE,
        validations=(_ROLES,),
    ),
    Policy(
        name="kairship-protected-definitions",
        targets=(Target("apiextensions.k8s.io", ("customresourcedefinitions",), _ALL),),
        conditions=PEOPLE,
        validations=(_DEFINITION_GROUP, _CONVERSION),
    ),
    Policy(
        name="kairship-protected-webhooks",
        targets=(
            Target(
                "admissionregistration.k8s.io",
                ("validatingwebhookconfigurations", "mutatingwebhookconfigurations"),
                _ALL,
            ),
        ),
        conditions=PEOPLE,
        validations=(_WEBHOOK_ADDRESS, _WEBHOOK_RULES),
    ),
    Policy(
        name="kairship-protected-apiservices",
        targets=(Target("apiregistration.k8s.io", ("apiservices",), _ALL),),
        conditions=PEOPLE,
        validations=(_API_SERVICE,),
    ),
    Policy(
        name="kairship-protected-namespaces",
        targets=(Target("", ("namespaces",), _ALL),),
        conditions=PEOPLE,
        validations=(
            Validation(
                f"!request.name.matches('{_RESERVED_NAMESPACES}') && !{_GENERATED_NAME}.matches('^(kube|karmada-es)-')",
                "namespaces of Kubernetes, of Karmada and of the plane are created, changed and deleted by these alone",
            ),
        ),
    ),
)
