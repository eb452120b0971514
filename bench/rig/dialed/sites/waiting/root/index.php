<?php
usleep(5000);
echo "waited";
