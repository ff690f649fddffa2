package main

import (
	"context"
	"flag"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const greeted = "example.org/greeted"

// Answers every ConfigMap with a greeting in its annotations, from a cache and by a patch, as controllers do.
type greeter struct{ client.Client }

func (g greeter) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var found corev1.ConfigMap
	if err := g.Get(ctx, request.NamespacedName, &found); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if found.Annotations[greeted] == found.Data["name"] {
		return ctrl.Result{}, nil
	}
	before := found.DeepCopy()
	if found.Annotations == nil {
		found.Annotations = map[string]string{}
	}
	found.Annotations[greeted] = found.Data["name"]
	return ctrl.Result{}, g.Patch(ctx, &found, client.MergeFrom(before))
}

func managing(arguments []string) {
	flags := flag.NewFlagSet("manager", flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", "", "how to reach the server")
	namespace := flags.String("namespace", "default", "where it works")
	_ = flags.Parse(arguments)
	ctrl.SetLogger(logr.Discard())
	manager, err := ctrl.NewManager(reached(*kubeconfig, false), ctrl.Options{
		Metrics:                 server.Options{BindAddress: "0"},
		Cache:                   cache.Options{DefaultNamespaces: map[string]cache.Config{*namespace: {}}},
		LeaderElection:          true,
		LeaderElectionID:        "greeter",
		LeaderElectionNamespace: *namespace,
	})
	if err != nil {
		fail(err)
	}
	err = ctrl.NewControllerManagedBy(manager).For(&corev1.ConfigMap{}).Complete(greeter{manager.GetClient()})
	if err != nil {
		fail(err)
	}
	go func() {
		<-manager.Elected()
		tell(line{Event: "leading"})
	}()
	if err := manager.Start(ctrl.SetupSignalHandler()); err != nil {
		fail(err)
	}
}
