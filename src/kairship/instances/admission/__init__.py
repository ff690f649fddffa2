"""The admission policies of an instance: they hold people to their own rights where Karmada would act for them.

Karmada has every right in every member, and what a person writes in the instance tells Karmada what to do there. RBAC
decides who may write a policy, but not what the policy may say. ValidatingAdmissionPolicies inside the instance decide
that: the API server itself evaluates them, so they hold for kubectl, REST and gRPC alike, and while the plane is down.

    policy              a ValidatingAdmissionPolicy with its binding, as data
    people              whom the policies hold, and how they ask for rights on kinds
    propagation         which kinds a person may have propagated, rescheduled and scaled
    overrides           which parts of an object an override may change
    reserved_metadata   labels and annotations by which Karmada recognises what belongs to what
    protected           objects of Karmada and of the plane, and addresses that the API server would call
    works               what Karmada itself may write for a template, whatever a person made it do
    admission_policies  all of them, and the probe that shows that they are in effect
"""

from kairship.instances.admission.admission_policies import POLICIES, irregular_plurals, manifests, probe
from kairship.instances.admission.policy import LABEL

__all__ = ["LABEL", "POLICIES", "irregular_plurals", "manifests", "probe"]
