package main

import (
	"context"
	"flag"
	"os"
	"time"

	v1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Says when it leads, and when it does not any more. Short times, so that a test need not wait.
func leader(arguments []string) {
	flags := flag.NewFlagSet("leader", flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", "", "how to reach the server")
	namespace := flags.String("namespace", "default", "where the Lease is")
	identity := flags.String("identity", "", "who it is")
	_ = flags.Parse(arguments)
	lock := &resourcelock.LeaseLock{
		LeaseMeta:  v1.ObjectMeta{Namespace: *namespace, Name: "clients"},
		Client:     kubernetes.NewForConfigOrDie(reached(*kubeconfig, false)).CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: *identity},
	}
	leaderelection.RunOrDie(context.Background(), leaderelection.LeaderElectionConfig{
		Lock:          lock,
		LeaseDuration: 6 * time.Second,
		RenewDeadline: 4 * time.Second,
		RetryPeriod:   500 * time.Millisecond,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { tell(line{Event: "leading", Name: *identity}) },
			OnStoppedLeading: func() {
				tell(line{Event: "stopped", Name: *identity})
				os.Exit(0)
			},
		},
	})
}
