#!/bin/bash
echo "It is good to have you here." > greeting.txt
